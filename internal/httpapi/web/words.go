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

// usedBy returns the texts that scripts use: by their names, or by a beginning of their names.
// Templates alone use the others.
func (w Words) usedBy(scripts string) Words {
	used := make(Words)
	for name, text := range w {
		found := strings.Contains(scripts, "'"+name+"'")
		for i, c := range name {
			found = found || c == '.' && (strings.Contains(scripts, "oneOf('"+name[:i]+"'") ||
				strings.Contains(scripts, "`"+name[:i]+".${"))
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
