package web

import "embed"

//go:embed templates
var templateFiles embed.FS

//go:embed static
var staticFiles embed.FS

//go:embed words
var wordFiles embed.FS
