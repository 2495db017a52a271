// Command vocabulary finds the words that words.txt forbids in the repository's tracked files: in
// their names, identifiers (camelCase and snake_case are split), log messages, comments and docs.
//
//	go run ./internal/testing/vocabulary  prints every hit as file:line: word; exit 1 if any
//
// Line 0 is the file's name.
package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed words.txt
var words string

func main() {
	hits, err := run(os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "vocabulary:", err)
		os.Exit(2)
	case hits > 0:
		fmt.Fprintf(os.Stderr, "vocabulary: %d words that the glossary replaces\n", hits)
		os.Exit(1)
	}
}

// run checks all tracked files below the working directory and returns the number of hits. An allow
// that removes no forbidden word from any file is a hit, too.
func run(out io.Writer) (hits int, err error) {
	list, err := parse(words)
	if err != nil {
		return 0, err
	}
	files, err := exec.Command("git", "ls-files").Output() // takes milliseconds
	if err != nil {
		return 0, fmt.Errorf("git ls-files: %w", err)
	}
	for file := range strings.Lines(string(files)) {
		file = strings.TrimSpace(file)
		lines, err := linesOf(".", file)
		if err != nil {
			return hits, err
		}
		for i, line := range lines {
			for _, word := range list.find(file, line) {
				hits++
				fmt.Fprintf(out, "%s:%d: %s\n", file, i, word)
			}
		}
	}
	for _, a := range list.allows {
		if !a.needed {
			hits++
			fmt.Fprintf(out, "words.txt: allow %s: is not needed\n", a.pattern)
		}
	}
	return hits, nil
}

// linesOf returns a file's name as line 0 and, unless the file is binary, its text. It returns
// nothing of files that are foreign or contain old words on purpose.
func linesOf(root, file string) ([]string, error) {
	if exempt.MatchString(file) {
		return nil, nil
	}
	if !texts.MatchString(file) {
		return []string{file}, nil
	}
	text, err := os.ReadFile(filepath.Join(root, file))
	return append([]string{file}, strings.Split(string(text), "\n")...), err
}

var (
	texts = regexp.MustCompile(`(^|/)[^./]*$|\.(go|lua|md|ya?ml|sql|sh|html|js|css|json|conf|txt` +
		`|gotmpl|gohtml|svg)$`)
	exempt = regexp.MustCompile(`^(internal/testing/vocabulary/|reports/|CHANGELOG.md$|LICENSE$` +
		`|docs/reference/glossary.md$)`)
)

// vocabulary is a parsed words.txt.
type vocabulary struct {
	scopes map[string][][]string // path prefixes by word; an empty list is every path
	allows []*allow
}

// allow is a pattern whose matches may contain forbidden words.
type allow struct {
	pattern *regexp.Regexp
	needed  bool // a match had one
}

func parse(text string) (vocabulary, error) {
	v := vocabulary{scopes: map[string][][]string{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if pattern, ok := strings.CutPrefix(line, "allow "); ok {
			re, err := regexp.Compile("(?i)" + pattern)
			if err != nil {
				return v, fmt.Errorf("words.txt: %w", err)
			}
			v.allows = append(v.allows, &allow{pattern: re})
			continue
		}
		forms, paths, _ := strings.Cut(line, "@")
		for form := range strings.FieldsSeq(forms) {
			v.scopes[form] = append(v.scopes[form], strings.Fields(paths))
		}
	}
	return v, nil
}

// wordPattern splits identifiers into words. "NewDesk", "deskKey", "SECKILL_DESK" and "desk_key"
// all contain the word desk.
var wordPattern = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// find returns the forbidden words of a line, and marks the allows that it needs.
func (v vocabulary) find(file, line string) []string {
	for _, a := range v.allows {
		if v.wordsOf(file, line) == nil {
			return nil
		}
		line = a.pattern.ReplaceAllStringFunc(line, func(match string) string {
			a.needed = a.needed || v.wordsOf(file, match) != nil
			return " "
		})
	}
	return v.wordsOf(file, line)
}

// wordsOf is find without the allows.
func (v vocabulary) wordsOf(file, line string) (found []string) {
	for _, word := range wordPattern.FindAllString(line, -1) {
		word = strings.ToLower(word)
		for _, paths := range v.scopes[word] {
			if within(file, paths) {
				found = append(found, word)
				break
			}
		}
	}
	return found
}

func within(file string, paths []string) bool {
	return len(paths) == 0 || slices.ContainsFunc(paths,
		func(p string) bool { return strings.HasPrefix(file, p+"/") })
}
