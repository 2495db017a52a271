// Package apicheck checks every round trip with the API against api/openapi.yaml.
//
// A Document is the OpenAPI 3.1 document. Check validates one round trip. The document must contain
// the response for the call and the status, in every field, header and media type. The document
// must also allow every request that the API accepted. A refused request may be arbitrary: the API
// refused it as malformed (400) or before it read it (401, 405). Client adds this check to an HTTP
// client, so a test checks all of its round trips, event streams included.
//
// Only tests may import this package. It imports kin-openapi and the document. ADR 34 states the
// reasons for that validator.
package apicheck
