package capacity

import (
	"fmt"
	"io"
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
	fmt.Fprintf(w, "\ncosts: %s, %s, %s\n", p.Costs.Machine, p.Costs.Date, p.Costs.Command)
	return w.Flush()
}

// digits writes three significant digits, with commas between thousands. More digits would seem
// more exact than a measured cost is.
func digits(x float64) string {
	if x < 999.5 {
		return fmt.Sprintf("%.3g", x)
	}
	unit := 1.0
	for x/unit >= 999.5 {
		unit *= 10
	}
	text := fmt.Sprintf("%.0f", float64(int64(x/unit+0.5))*unit)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
