package rules

import (
	"cmp"
	"slices"
	"strings"

	"flashsale.dev/seckill/internal/ratelimit"
)

// Entry is a key and a value of a descriptor, by which Envoy describes a request. In a rule an
// empty value stands for every value, and a value that ends with * for all that begin so.
type Entry struct{ Key, Value string }

// serves reports whether the entry of a rule serves one of a descriptor.
func (own Entry) serves(e Entry) bool {
	start, open := strings.CutSuffix(own.Value, "*")
	return own.Key == e.Key && (own.Value == "" || own.Value == e.Value ||
		open && strings.HasPrefix(e.Value, start))
}

// fixed reports whether the entry of a rule serves one value only.
func (own Entry) fixed() bool { return own.Value != "" && !strings.HasSuffix(own.Value, "*") }

// precision orders entries of rules that serve the same value: the longer beginning is higher, and
// the whole value is highest.
func (own Entry) precision() int {
	if own.fixed() {
		return maxEntry
	}
	return len(own.Value)
}

const (
	maxEntries = 8
	maxEntry   = 200
)

// entries reads the rule's descriptor: each item is key or key=value.
func (r Rule) entries() ([]Entry, error) {
	if len(r.Descriptor) == 0 {
		if r.Domain != "" {
			return nil, ratelimit.BadField("domain", "needs a descriptor")
		}
		return nil, nil
	}
	if len(r.Descriptor) > maxEntries {
		return nil, ratelimit.BadField("descriptor", "has more than %d entries", maxEntries)
	}
	all := make([]Entry, len(r.Descriptor))
	for i, item := range r.Descriptor {
		key, value, fixed := strings.Cut(item, "=")
		if key == "" || fixed && value == "" || len(item) > maxEntry {
			return nil, ratelimit.BadField("descriptor",
				"must have items key or key=value of at most %d bytes, and has %q", maxEntry, item)
		}
		all[i] = Entry{key, value}
	}
	return all, nil
}

// ForDescriptor returns the rule of a descriptor, and the key of its limiter; ok is false if no
// rule matches. A rule matches a descriptor with the same keys in the same order. Of several
// matching rules the more precise value decides, entry by entry, and then a rule's own domain.
func (b *Rulebook) ForDescriptor(
	domain string, entries []Entry,
) (r *Compiled, key string, ok bool) {
	for _, name := range b.order {
		c := b.rules[name]
		if c.describes(domain, entries) && (r == nil || moreSpecific(c, r) > 0) {
			r = c
		}
	}
	if r == nil {
		return nil, "", false
	}
	return r, r.descriptorKey(entries), true
}

func (r *Compiled) describes(domain string, entries []Entry) bool {
	if len(r.entries) == 0 || r.Domain != "" && r.Domain != domain {
		return false
	}
	return slices.EqualFunc(r.entries, entries, Entry.serves)
}

// moreSpecific compares two rules that match the same descriptor.
func moreSpecific(x, y *Compiled) int {
	precise := func(e, f Entry) int { return cmp.Compare(e.precision(), f.precision()) }
	return cmp.Or(slices.CompareFunc(x.entries, y.entries, precise),
		cmp.Compare(min(1, len(x.Domain)), min(1, len(y.Domain))))
}

// descriptorKey joins the values of the entries that the rule does not fix. Empty values count
// together. A single value is the key as it is, so that operators find it by its name.
func (r *Compiled) descriptorKey(entries []Entry) string {
	var parts []string
	for i, own := range r.entries {
		if !own.fixed() {
			parts = append(parts, cmp.Or(entries[i].Value, SharedKey))
		}
	}
	switch {
	case len(parts) == 0:
		return "all"
	case len(parts) == 1 && isOperatorsKey(parts[0]):
		return parts[0]
	}
	for i := range parts {
		parts[i] = bounded(parts[i])
	}
	return strings.Join(parts, ":")
}

// isOperatorsKey reports whether a value may be a key unhashed. It must have no hash tag of its
// own, and must not be the key of other values.
func isOperatorsKey(value string) bool {
	return CheckKey(value) == nil && value != AnyKey && !strings.ContainsAny(value, "#{}")
}
