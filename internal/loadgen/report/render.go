package report

import (
	"cmp"
	_ "embed" // for the templates below
	"fmt"
	htmltemplate "html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"text/template"

	"flashsale.dev/seckill/internal/loadgen/buyer"
)

var (
	//go:embed text.gotmpl
	textTemplate string
	//go:embed page.gohtml
	pageTemplate string
)

// Table writes the report as text. Its first line is PASS or FAIL with a summary.
func (r Report) Table(w io.Writer) error {
	t, err := template.New("text").Funcs(functions()).Parse(textTemplate)
	if err == nil {
		err = t.Execute(w, r)
	}
	if err != nil {
		return fmt.Errorf("write the report as text: %w", err)
	}
	return nil
}

// HTML writes one self-contained page: no script, no request. It can be kept and mailed, and opened
// without a network.
func (r Report) HTML(w io.Writer) error {
	t, err := htmltemplate.New("page").Funcs(functions()).Parse(pageTemplate)
	if err == nil {
		err = t.Execute(w, r)
	}
	if err != nil {
		return fmt.Errorf("write the report as HTML: %w", err)
	}
	return nil
}

// functions are those of both templates. A template cannot instantiate a generic function, so each
// kind of map has a name of its own.
func functions() template.FuncMap {
	return template.FuncMap{
		"answers":  counts[string, int64],
		"outcomes": counts[buyer.Outcome, int],
		"orders":   counts[string, int],
	}
}

// counts lists names with their counts, the largest first. Equal counts are ordered by name, so
// that two reports of the same run are equal.
func counts[K ~string, V int | int64](of map[K]V) string {
	keys := slices.SortedFunc(maps.Keys(of), func(a, b K) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b))
	})
	parts := make([]string, 0, len(keys))
	for _, k := range keys {
		parts = append(parts, fmt.Sprintf("%s %d", k, of[k]))
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}
