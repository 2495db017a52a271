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
	"slices"
	"strings"
)

// Asset is a file that a page loads.
type Asset struct {
	Type string // media type
	Body []byte
	Gzip []byte // Body, compressed
}

// assets are all files under one version. Modules import each other by relative addresses, so a
// change of one must change the address of all.
type assets struct {
	version string
	byName  map[string]Asset
}

// loadAssets reads the static files. It adds a script module, such as words-en.js, for each group
// and language of texts. Only console pages load the console's group. A logo is an asset too.
func loadAssets(groups map[string]map[Lang]Words, brand Brand) (*assets, error) {
	bodies := make(map[string][]byte)
	if brand.logo != "" {
		bodies[brand.logo] = brand.body
	}
	static, err := files.ReadDir("static")
	if err != nil {
		return nil, fmt.Errorf("assets: %w", err)
	}
	var scripts strings.Builder
	for _, f := range static {
		body, err := files.ReadFile("static/" + f.Name())
		if err != nil {
			return nil, fmt.Errorf("assets: %w", err)
		}
		if path.Ext(f.Name()) == ".js" {
			body = withoutComments(body)
			scripts.Write(body)
		}
		bodies[f.Name()] = body
	}
	for group, words := range groups {
		for l, w := range words {
			text, err := json.Marshal(w.usedBy(scripts.String()))
			if err != nil {
				return nil, fmt.Errorf("assets: %s of %s: %w", group, l, err)
			}
			bodies[group+"-"+string(l)+".js"] = slices.Concat([]byte("export default "), text,
				[]byte(";\n"))
		}
	}
	return pack(bodies)
}

// withoutComments removes the indentation and the lines that are comments, a fourth of the scripts.
// No text of a script has several lines.
func withoutComments(script []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(script) {
		line = bytes.TrimLeft(line, " ")
		if !bytes.HasPrefix(line, []byte("//")) && !bytes.HasPrefix(line, []byte("/*")) &&
			!bytes.HasPrefix(line, []byte("*")) {
			out.Write(line)
		}
	}
	return out.Bytes()
}

// pack compresses the files and derives their common version from all names and bodies.
func pack(bodies map[string][]byte) (*assets, error) {
	sum := sha256.New()
	a := &assets{byName: make(map[string]Asset)}
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		_, _ = fmt.Fprintf(sum, "%s %d\n", name, len(bodies[name])) // a hash never fails
		_, _ = sum.Write(bodies[name])
		zipped, err := compress(bodies[name])
		if err != nil {
			return nil, fmt.Errorf("assets: compress %s: %w", name, err)
		}
		a.byName[name] = Asset{Type: mediaType(name), Body: bodies[name], Gzip: zipped}
	}
	a.version = hex.EncodeToString(sum.Sum(nil)[:8])
	return a, nil
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

func compress(body []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	err = w.Close() // writes the trailer
	return out.Bytes(), err
}

// modules returns a script and all scripts that it imports, so that a page can preload them at
// once.
func (a *assets) modules(entry string) []string {
	found, open := []string{}, []string{entry}
	for len(open) > 0 {
		name := open[0]
		open = open[1:]
		if slices.Contains(found, name) {
			continue
		}
		found = append(found, name)
		for line := range strings.Lines(string(a.byName[name].Body)) {
			if _, from, ok := strings.Cut(line,
				" from './"); ok && strings.HasPrefix(line, "import ") {
				next, _, _ := strings.Cut(from, "'")
				open = append(open, next)
			}
		}
	}
	return found
}
