package web

import "embed"

//go:embed templates static words
var files embed.FS
