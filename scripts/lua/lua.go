// Package lua holds the Redis scripts, one job each, embedded here because
// no package can embed what lies above it.
//
// Every script opens with a header that names its KEYS, ARGV with units and
// every value it returns; the Go beside its user mirrors the codes.
package lua

import (
	"embed"
	"fmt"
)

//go:embed *.lua
var files embed.FS

// Source gives the text of scripts/lua/<name>.lua. A name that is not there is
// a mistake of the program, not of its user, and panics.
func Source(name string) string {
	text, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic(fmt.Sprintf("lua: no script %q: %v", name, err))
	}
	return string(text)
}
