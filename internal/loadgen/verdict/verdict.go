package verdict

import (
	"fmt"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
)

// Verdict is what came of the comparison.
type Verdict struct {
	OK       bool   `json:"ok"`
	Rules    []Rule `json:"rules"`
	Promised int    `json:"promised"` // order numbers that were answered with 202
	Found    int    `json:"found"`    // orders of buyers who could not know: their call had no certain end
	// What became of both.
	Orders map[string]int   `json:"orders"` // by status
	Ledger apiclient.Ledger `json:"ledger"`
	// Differences are the first of them, word for word; More is how many there are beyond.
	Differences []string `json:"differences,omitempty"`
	More        int      `json:"more,omitempty"`
}

// Rule is one thing that must hold.
type Rule struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Count int    `json:"count"` // how often it was broken
}

// The rules.
const (
	ruleRead    = "the books can be read"
	ruleLost    = "every 202 has an order"
	ruleFinal   = "every 202 came to an end"
	ruleKept    = "no promise was broken (failed)"
	ruleDouble  = "one path, one order; one order, one buyer"
	ruleLimit   = "nobody has more than the limit"
	ruleStock   = "no more was sold than there was"
	ruleUntold  = "no order that nobody was told of"
	ruleLedger  = "the ledger says the same as the orders"
	ruleSoldOut = "\"sold out\" was said only of what was"
	ruleThieves = "no thief got through"
)

func rules() []string {
	return []string{
		ruleRead, ruleLost, ruleFinal, ruleKept, ruleDouble, ruleLimit, ruleStock, ruleUntold, ruleLedger, ruleSoldOut, ruleThieves,
	}
}

// mostDifferences is how many are kept word for word.
const mostDifferences = 50

// differ takes note of a difference.
func (v *Verdict) differ(rule, format string, args ...any) {
	for i := range v.Rules {
		if v.Rules[i].Name == rule {
			v.Rules[i].OK = false
			v.Rules[i].Count++
		}
	}
	v.OK = false
	if len(v.Differences) >= mostDifferences {
		v.More++
		return
	}
	v.Differences = append(v.Differences, rule+": "+fmt.Sprintf(format, args...))
}

func newVerdict() *Verdict {
	v := &Verdict{OK: true, Orders: map[string]int{}}
	for _, name := range rules() {
		v.Rules = append(v.Rules, Rule{Name: name, OK: true})
	}
	return v
}
