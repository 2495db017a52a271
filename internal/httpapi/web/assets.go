package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Asset is a file that a page loads.
type Asset struct {
	Type string // media type
	Body []byte
	Gzip func() []byte // returns Body compressed, by the first call
}

// assets are all files under one version. Modules import each other by relative addresses, so a
// change of one must change the address of all.
type assets struct {
	version string
	byName  map[string]Asset
	modules map[string][]string // by page: its script and all that it imports, to preload them at once
}

// loadAssets reads the static files. It adds a script module, such as shop-words-en.js, for each
// page and language, with the texts that the page's scripts use. A logo is an asset too.
func loadAssets(byPage map[string]map[Lang]Words, brand Brand) (*assets, error) {
	bodies := make(map[string][]byte)
	if brand.logo != "" {
		bodies[brand.logo] = brand.body
	}
	static, err := files.ReadDir("static")
	if err != nil {
		return nil, fmt.Errorf("assets: %w", err)
	}
	for _, f := range static {
		body, err := files.ReadFile("static/" + f.Name())
		if err != nil {
			return nil, fmt.Errorf("assets: %w", err)
		}
		switch path.Ext(f.Name()) {
		case ".js":
			body = withoutComments(body)
		case ".css":
			body = withoutSpaces(withoutComments(body))
		}
		bodies[f.Name()] = body
	}
	digits, err := json.Marshal(unusualDigits())
	if err != nil {
		return nil, fmt.Errorf("assets: digits of currencies: %w", err)
	}
	modules := make(map[string][]string)
	for name, words := range byPage {
		modules[name] = modulesOf(bodies, name+".js")
		var scripts strings.Builder
		for _, module := range modules[name] {
			scripts.Write(bodies[module])
		}
		used := usesOf(scripts.String())
		for l, w := range words {
			text, err := json.Marshal(w.usedBy(used))
			if err != nil {
				return nil, fmt.Errorf("assets: words of %s in %s: %w", name, l, err)
			}
			bodies[wordsFile(name, l)] = slices.Concat([]byte("export const digits = "), digits,
				[]byte(";\nexport default "), text, []byte(";\n"))
		}
	}
	a := pack(bodies)
	a.modules = modules
	return a, nil
}

// comment is the beginning of a line that is a comment, or a part of one. A line of a style sheet
// may begin with the selector "*, ".
var comment = regexp.MustCompile(`^ *(//|/\*|\*/|\*( |$))`)

// trailing is a comment at the end of a line of a script. No text has one of these signs before //.
var trailing = regexp.MustCompile(`([;{},)]) +// .*`)

// withoutComments removes the indentation and the comments, a fourth of the scripts. No text of a
// script has several lines.
func withoutComments(source []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(source) {
		if comment.Match(bytes.TrimSuffix(line, []byte("\n"))) {
			continue
		}
		line = bytes.TrimLeft(line, " ")
		if bytes.Contains(line, []byte(" // ")) { // most have none, and an expression is slow
			line = trailing.ReplaceAll(line, []byte("$1"))
		}
		out.Write(line)
	}
	return out.Bytes()
}

// withoutSpaces removes the spaces of a style sheet that separate nothing. No text in a style sheet
// has one of these signs.
func withoutSpaces(sheet []byte) []byte {
	r := strings.NewReplacer("; }", "}", " { ", "{", " }", "}", "; ", ";")
	return []byte(r.Replace(string(sheet)))
}

// pack derives the common version of the files from all names and bodies.
func pack(bodies map[string][]byte) *assets {
	sum := sha256.New()
	a := &assets{byName: make(map[string]Asset)}
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		_, _ = fmt.Fprintf(sum, "%s %d\n", name, len(bodies[name])) // a hash never fails
		_, _ = sum.Write(bodies[name])
		a.byName[name] = Asset{
			Type: mediaType(name), Body: bodies[name],
			Gzip: sync.OnceValue(func() []byte {
				return Compress(bodies[name], gzip.BestCompression)
			}),
		}
	}
	a.version = hex.EncodeToString(sum.Sum(nil)[:8])
	return a
}

// mediaType returns the Content-Type, which browsers need because of nosniff. The tables of package
// mime depend on the machine.
func mediaType(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".webp":
		return "image/webp"
	default:
		return "application/octet-stream"
	}
}

// Compress returns a body as gzip, with one of gzip's levels. A page of 15 cards shrinks from 31 KB
// to 3 KB at the lowest.
func Compress(body []byte, level int) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, level) // its error reports an unknown level
	_, _ = w.Write(body)                     // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

// modulesOf returns a script and all scripts that it imports.
func modulesOf(bodies map[string][]byte, entry string) []string {
	found, open := []string{}, []string{entry}
	for len(open) > 0 {
		name := open[0]
		open = open[1:]
		if slices.Contains(found, name) {
			continue
		}
		found = append(found, name)
		for line := range strings.Lines(string(bodies[name])) {
			if !strings.HasPrefix(line, "import ") {
				continue
			}
			if _, from, ok := strings.Cut(line, "'./"); ok {
				next, _, _ := strings.Cut(from, "'")
				open = append(open, next)
			}
		}
	}
	return found
}
