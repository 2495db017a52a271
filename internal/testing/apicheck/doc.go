// Package apicheck holds every exchange with the API against api/openapi.yaml.
//
// A Document knows the calls of the OpenAPI 3.1 document. Check judges one exchange: the answer
// must be one that the document has for the call and the status, in every field, header and media
// type; and a request that the API took must be one that the document allows. What the API refused
// as malformed (400), or before it had read it (401, 405), may be anything. Client puts the same
// check round an HTTP client, so that a test which uses it checks each of its exchanges, event
// streams included.
//
// For tests alone. It imports kin-openapi and the document; why that validator says ADR 34.
package apicheck
