// Package logging makes the programs' structured logs. Every record has the request's id and the
// trace's id of its context.
//
// It imports the standard library alone.
package logging
