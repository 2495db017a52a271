package verdict

import (
	"fmt"
	"slices"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
)

// Verdict is the result of the comparison.
type Verdict struct {
	OK       bool   `json:"ok"`
	Rules    []Rule `json:"rules"`
	Promised int    `json:"promised"` // order numbers of 202 answers
	Found    int    `json:"found"`    // orders of uncertain buyers, without a 202
	// Orders counts the orders of both, and Ledger is the sale's last ledger.
	Orders map[string]int   `json:"orders"` // by status
	Ledger apiclient.Ledger `json:"ledger"`
	Line   *Line            `json:"line,omitempty"` // of a sale with a waiting room
	// Differences are the first maxDifferences in words; More counts the rest.
	Differences []string `json:"differences,omitempty"`
	More        int      `json:"more,omitempty"`
}

// Rule is one condition that must hold. A report lists every rule, also those that hold. A rule
// that the Case skips has no violations and is therefore listed as OK.
type Rule struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Count int    `json:"count"` // violations
}

// The rules, in the order of a report.
const (
	ruleRead       = "the ledger and the orders are readable"
	ruleLost       = "every 202 has an order"
	ruleFinal      = "no accepted order is still queued"
	ruleFailed     = "no accepted order failed"
	ruleDouble     = "one order per path, one buyer per order"
	ruleLimit      = "no buyer exceeds the limit"
	ruleStock      = "no units are oversold"
	ruleUnreported = "no order without a 202"
	ruleLedger     = "the ledger matches the orders"
	ruleSoldOut    = "SOLD_OUT only when nothing was left"
	ruleHostile    = "every hostile call was refused"
)

func rules() []string {
	return []string{
		ruleRead, ruleLost, ruleFinal, ruleFailed, ruleDouble, ruleLimit, ruleStock, ruleUnreported,
		ruleLedger, ruleSoldOut, ruleHostile,
	}
}

// maxDifferences bounds the differences that a verdict keeps in words.
const maxDifferences = 50

// addDifference records a violation of a rule. It keeps the first ones in words, because a broken
// run may have one for every buyer.
func (v *Verdict) addDifference(rule, format string, args ...any) {
	i := slices.IndexFunc(v.Rules, func(r Rule) bool { return r.Name == rule })
	v.Rules[i].OK, v.Rules[i].Count = false, v.Rules[i].Count+1
	v.OK = false
	if len(v.Differences) >= maxDifferences {
		v.More++
		return
	}
	v.Differences = append(v.Differences, rule+": "+fmt.Sprintf(format, args...))
}

func newVerdict(line bool) Verdict {
	v := Verdict{OK: true, Orders: map[string]int{}}
	names := rules()
	if line {
		v.Line = &Line{}
		names = append(names, ruleDraw, ruleOrder, ruleInVain, ruleIdle, ruleUnsold)
	}
	for _, name := range names {
		v.Rules = append(v.Rules, Rule{Name: name, OK: true})
	}
	return v
}
