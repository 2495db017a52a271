package web

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Words are the sentences of one language by their names. {name} in a sentence is filled in.
type Words map[string]string

// loadWords reads the words of all languages.
func loadWords() (map[Lang]Words, error) {
	all := make(map[Lang]Words)
	for _, l := range Langs() {
		text, err := wordFiles.ReadFile("words/" + string(l) + ".json")
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

// say is a sentence, its {names} filled in from pairs of a name and what it is. A name that is not there is shown as
// it is: somebody will see it and tell.
func (w Words) format(name string, pairs ...any) string {
	sentence, ok := w[name]
	if !ok {
		return name
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		sentence = strings.ReplaceAll(sentence, fmt.Sprintf("{%v}", pairs[i]), fmt.Sprint(pairs[i+1]))
	}
	return sentence
}
