package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

// trackedFiles lists the repository's files that end with one of the suffixes.
func trackedFiles(t *testing.T, suffix string) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "*"+suffix)
	list.Dir = root
	out, err := list.Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	require.NoError(t, err)
	return string(text)
}

// TestREADME_IsShort checks the bound of the README, which leaves details to the pages it links.
func TestREADME_IsShort(t *testing.T) {
	require.LessOrEqual(t, strings.Count(read(t, "README.md"), "\n"), 130)
}

func TestKnownProblems_NameExistingTests(t *testing.T) {
	var tests strings.Builder
	for _, file := range trackedFiles(t, "_test.go") {
		tests.WriteString(read(t, file))
	}
	names := regexp.MustCompile("`(?:TestStore//)?(Test\\w+)`").FindAllStringSubmatch(read(t,
		"docs/explanation/known-problems.md"), -1)
	require.NotEmpty(t, names)
	for _, name := range names {
		require.Regexp(t, `func (\(\w+ \w+\) )?`+name[1]+`\(`, tests.String())
	}
}

func TestDocs_RelativeLinksExist(t *testing.T) {
	links := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, file := range trackedFiles(t, ".md") {
		for _, link := range links.FindAllStringSubmatch(read(t, file), -1) {
			path, _, _ := strings.Cut(link[1], "#")
			if path == "" || strings.Contains(path, ":") {
				continue
			}
			_, err := os.Stat(filepath.Join(root, filepath.Dir(file), path))
			require.NoError(t, err, "%s links %s", file, link[1])
		}
	}
}

// TestDecisions_SayThatTheyAreSuperseded checks that a record names the one that superseded it.
func TestDecisions_SayThatTheyAreSuperseded(t *testing.T) {
	const dir = "docs/explanation/adr/"
	rows := regexp.MustCompile(`\((\S+)\) \|.*superseded.* by (\d+)`)
	found := rows.FindAllStringSubmatch(read(t, dir+"README.md"), -1)
	require.NotEmpty(t, found)
	for _, row := range found {
		require.Regexp(t, `\bADR\s+`+row[2]+`\b`, read(t, dir+row[1]))
	}
}

// TestDocs_GoTestCommandsFindTests checks that each command of the documents that names a test or a
// benchmark of a package finds one there. It does not check subtests.
func TestDocs_GoTestCommandsFindTests(t *testing.T) {
	command := regexp.MustCompile("go test [^`]*")
	dir := regexp.MustCompile(`\./([\w/-]*\w)`)
	pattern := regexp.MustCompile(`-(run|bench) '?([^\s'/]+)`)
	functions := map[string]*regexp.Regexp{
		"run":   regexp.MustCompile(`func Test\w+`),
		"bench": regexp.MustCompile(`func Benchmark\w+`),
	}
	checked := 0
	for _, file := range trackedFiles(t, ".md") {
		text := strings.ReplaceAll(read(t, file), "\n", " ")
		for _, c := range command.FindAllString(text, -1) {
			in := dir.FindStringSubmatch(c)
			for _, p := range pattern.FindAllStringSubmatch(c, -1) {
				if in == nil || p[2] == "^$" {
					continue
				}
				var names []string
				for _, source := range trackedFiles(t, "_test.go") {
					if filepath.Dir(source) == in[1] {
						names = append(names, functions[p[1]].FindAllString(read(t, source), -1)...)
					}
				}
				require.True(t, slices.ContainsFunc(names, regexp.MustCompile(p[2]).MatchString),
					"%s: %s", file, c)
				checked++
			}
		}
	}
	require.Greater(t, checked, 10)
}

// TestDocs_NameExistingSettingsAndMetrics checks the pages against the two generated references.
func TestDocs_NameExistingSettingsAndMetrics(t *testing.T) {
	known := read(t, "docs/reference/configuration.md") + read(t, "docs/reference/metrics.md") +
		"`SECKILL_TEST_MYSQL_DSN`, the databases `seckill_test` and the network `seckill_outside`"
	names := regexp.MustCompile(`\b(SECKILL|seckill)_\w*[A-Za-z]`)
	checked := 0
	for _, file := range trackedFiles(t, ".md") {
		if dir := filepath.Dir(file); dir != "docs/how-to" && dir != "docs/explanation" {
			continue
		}
		for _, name := range names.FindAllString(read(t, file), -1) {
			require.Contains(t, known, "`"+name+"`", file)
			checked++
		}
	}
	require.Greater(t, checked, 100)
}

// TestOperate_ExplainsEveryCause checks that the operator's page has the causes that /readyz and
// the log show, up to what follows a colon or a comma.
func TestOperate_ExplainsEveryCause(t *testing.T) {
	page := read(t, "docs/how-to/operate.md")
	literals := regexp.MustCompile(
		`(?:cause\.With\(.*,\s*|Problem: +|reason = (?:fmt\.Sprintf\()?)"([^"%:,;]*\w)`)
	constants := regexp.MustCompile(`(?m)^\t[A-Z]\w+ += "([^":,;]+)`)
	found := constants.FindAllStringSubmatch(read(t, "internal/cause/cause.go"), -1)
	for _, dir := range []string{"internal/redisstore/", "internal/rabbit/"} {
		for _, file := range trackedFiles(t, ".go") {
			if strings.HasPrefix(file, dir) && !strings.HasSuffix(file, "_test.go") {
				found = append(found, literals.FindAllStringSubmatch(read(t, file), -1)...)
			}
		}
	}
	require.Greater(t, len(found), 20)
	for _, cause := range found {
		require.Contains(t, page, "`"+cause[1])
	}
}

// TestArchitecture_DrawsEveryImport compares the drawing of the layers with the imports of the
// packages below internal/. In a box a package may import those after the next arrow.
func TestArchitecture_DrawsEveryImport(t *testing.T) {
	_, drawing, _ := strings.Cut(read(t, "docs/explanation/architecture.md"), "flowchart TD\n")
	drawing, _, _ = strings.Cut(drawing, "```")
	level, below, end := map[string]string{}, map[string][]string{}, map[string]string{}
	for _, box := range regexp.MustCompile(`(\w+)\["([^":]+)`).FindAllStringSubmatch(drawing, -1) {
		for i, names := range strings.Split(box[2], "→") {
			at, next := fmt.Sprint(box[1], i), fmt.Sprint(box[1], i+1)
			below[at], end[box[1]] = []string{next}, next
			for name := range strings.SplitSeq(names, "·") {
				level[strings.TrimSpace(name)] = at
			}
		}
	}
	arrows := regexp.MustCompile(`(\w+)(?:\["[^"]+"\])? --> (\w+)`)
	for _, arrow := range arrows.FindAllStringSubmatch(drawing, -1) {
		from := end[arrow[1]]
		below[from] = append(below[from], arrow[2]+"0")
	}
	var reaches func(from, to string) bool
	reaches = func(from, to string) bool {
		return slices.ContainsFunc(below[from], func(next string) bool {
			return next == to || reaches(next, to)
		})
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-f",
		`{{if .GoFiles}}{{.ImportPath}} {{join .Imports " "}}{{end}}`, "./internal/...")
	list.Dir = root
	out, err := list.Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		var packages []string
		for _, name := range strings.Fields(line) {
			name, internal := strings.CutPrefix(name, "flashsale.dev/seckill/internal/")
			if internal {
				packages = append(packages, name)
			}
		}
		if len(packages) == 0 || strings.HasPrefix(packages[0], "testing/") {
			continue
		}
		require.Contains(t, level, packages[0], "the drawing lacks a package")
		for _, name := range packages[1:] {
			require.True(t, reaches(level[packages[0]], level[name]), "%s imports %s", packages[0],
				name)
		}
	}
}
