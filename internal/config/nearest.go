package config

import (
	"fmt"
	"maps"
	"slices"
)

// unknown returns a warning for every SECKILL_ name that is not a setting of any program. A setting
// of another program is no mistake, because programs often share one environment.
func unknown(provided map[string]string) []string {
	var warnings []string
	known := Settings("")
	for _, name := range slices.Sorted(maps.Keys(provided)) {
		if slices.ContainsFunc(known, func(s Setting) bool { return s.Name == name }) {
			continue
		}
		warnings = append(warnings,
			fmt.Sprintf("%s is not a setting; did you mean %s?", name, nearest(name, known)))
	}
	return warnings
}

// nearest returns the setting with the most similar name. Without a suggestion an operator may
// overlook that the default of a misspelled setting applies.
func nearest(name string, known []Setting) string {
	return slices.MinFunc(known, func(a, b Setting) int {
		return distance(name, a.Name) - distance(name, b.Name)
	}).Name
}

// distance is the Levenshtein distance: the characters to insert, delete or replace. It keeps one
// row of Wagner and Fischer's table.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
