// Package api embeds the OpenAPI document of the HTTP API, which the server serves at
// /openapi.yaml.
package api

import _ "embed" // for the document below

//go:embed openapi.yaml
var openAPI []byte

// OpenAPI returns the OpenAPI 3.1 document as YAML. Callers must not change the bytes.
func OpenAPI() []byte { return openAPI }
