package report

import (
	_ "embed" // for the templates below
	"encoding/json"
	htmltemplate "html/template"
	"io"
	"text/template"
)

var (
	//go:embed text.gotmpl
	textTemplate string
	//go:embed page.gohtml
	pageTemplate string
)

// Table writes the report as text. Its first line is PASS or FAIL with a summary.
func (r Report) Table(w io.Writer) error {
	return template.Must(template.New("text").Parse(textTemplate)).Execute(w, r)
}

// HTML writes one self-contained page: no script, no request. It can be kept and mailed, and opened
// without a network.
func (r Report) HTML(w io.Writer) error {
	return htmltemplate.Must(htmltemplate.New("page").Parse(pageTemplate)).Execute(w, r)
}

// JSON writes the report for programs.
func (r Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
