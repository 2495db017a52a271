// Package docs embeds what the API tells of itself, because no package can embed what lies above it.
package docs

import _ "embed" // for the document below

//go:embed openapi.yaml
var openAPI []byte

// OpenAPI is the OpenAPI 3.1 document, as YAML.
func OpenAPI() []byte { return openAPI }
