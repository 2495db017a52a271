// Package lua embeds the Redis scripts, one for each step. It exists because Go cannot embed files
// of a parent directory.
//
// Every script begins with a header that names its purpose, KEYS, ARGV with units and return
// values. The Go package that runs a script mirrors the codes as typed constants.
package lua

import (
	"embed"
	"fmt"
)

//go:embed *.lua
var files embed.FS

// Source returns the text of scripts/lua/<name>.lua. It panics for an unknown name, which only a
// program error causes.
func Source(name string) string {
	text, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic(fmt.Sprintf("lua: no script %q: %v", name, err))
	}
	return string(text)
}
