package capacity

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// Text writes the plan as tables for people.
func (p Plan) Text(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "part\twork\tcount\tµs each\tCPU s\tpeak /s")
	for _, r := range p.Rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Part, r.Work, digits(r.Count),
			digits(r.Micros), digits(r.Seconds), digits(r.Peak))
	}
	fmt.Fprintln(w, "\npart\tCPU s\tcores at the peak\tnodes needed")
	for _, t := range p.Parts {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", t.Part, digits(t.Seconds), digits(t.PeakCores), t.Count)
	}
	fmt.Fprintln(w, "\ndata\tcount\tbytes each\tMB")
	for _, a := range p.Amounts {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", a.What, digits(a.Count), digits(a.Bytes), digits(a.MB))
	}
	fmt.Fprintf(w, "\ncosts: %s\n", p.Costs)
	return w.Flush()
}

// digits writes three significant digits, with commas between thousands. More digits would seem
// more exact than a measured cost is.
func digits(x float64) string {
	text := fmt.Sprintf("%.3g", x)
	rounded, err := strconv.ParseFloat(text, 64)
	if err != nil || rounded < 1000 {
		return text
	}
	text = fmt.Sprintf("%.0f", rounded)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
