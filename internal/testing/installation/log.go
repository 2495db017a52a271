package installation

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// Log is the end of what it wrote.
func (p *Program) Log() string { return p.log.String() }

// Wrote counts the lines of its log, of the last megabyte, that have all these words.
func (p *Program) Wrote(words ...string) (lines int) {
	for line := range strings.Lines(p.log.all()) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			lines++
		}
	}
	return lines
}

// logFile keeps the last part of what a program writes.
type logFile struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const logKept = 16 << 10

func (l *logFile) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text.Len() > 64*logKept {
		l.text.Next(l.text.Len() - logKept)
	}
	return l.text.Write(b)
}

func (l *logFile) String() string {
	text := l.all()
	return text[max(0, len(text)-logKept):]
}

func (l *logFile) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
