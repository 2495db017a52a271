// Package app wires the rooms of the house together for the programs: the services behind the HTTP API, the crew that
// works in the background, and the order in which all of them start and stop. It holds no rules of its own.
//
// What differs between programs is where the parts come from: internal/servers connects to real ones,
// internal/embedded brings its own.
package app
