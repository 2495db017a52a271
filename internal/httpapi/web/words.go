package web

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Words are the texts of one language by name. A text may have {placeholders}.
type Words map[string]string

// wordsFile is the name of the script module with a page's texts in a language.
func wordsFile(page string, l Lang) string { return page + "-words-" + string(l) + ".js" }

// loadWords parses the texts of all languages in a folder.
func loadWords(folder string) (map[Lang]Words, error) {
	all := make(map[Lang]Words)
	for _, l := range Langs() {
		text, err := files.ReadFile(folder + "/" + string(l) + ".json")
		if err != nil {
			return nil, fmt.Errorf("words of %s: %w", l, err)
		}
		var w Words
		if err := json.Unmarshal(text, &w); err != nil {
			return nil, fmt.Errorf("words of %s: %w", l, err)
		}
		all[l] = w
	}
	return all, nil
}

// uses are the texts that scripts use. Templates alone use the others.
type uses struct {
	names      map[string]bool // 'buy.now'
	beginnings map[string]bool // of names that a script completes: oneOf('reason', …) or `reason.${…}`
}

// usesOf reads scripts one time, because a search for each text takes longer than the rest of New.
func usesOf(scripts string) uses {
	u := uses{names: make(map[string]bool), beginnings: make(map[string]bool)}
	before := ""
	for quoted := range strings.SplitSeq(scripts, "'") {
		u.names[quoted] = true
		if strings.HasSuffix(before, "oneOf(") {
			u.beginnings[quoted] = true
		}
		before = quoted
	}
	for quoted := range strings.SplitSeq(scripts, "`") {
		if beginning, _, found := strings.Cut(quoted, ".${"); found {
			u.beginnings[beginning] = true
		}
	}
	return u
}

// usedBy returns the texts that scripts use.
func (w Words) usedBy(u uses) Words {
	used := make(Words)
	for name, text := range w {
		found := u.names[name]
		for i, c := range name {
			found = found || c == '.' && u.beginnings[name[:i]]
		}
		if found {
			used[name] = text
		}
	}
	return used
}

// format returns a text with its placeholders filled in from pairs of name and value. An unknown
// text's name is returned, so that the mistake is visible on the page.
func (w Words) format(name string, pairs ...any) string {
	sentence, ok := w[name]
	if !ok {
		return name
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		sentence = strings.ReplaceAll(sentence, fmt.Sprintf("{%v}", pairs[i]),
			fmt.Sprint(pairs[i+1]))
	}
	return sentence
}
