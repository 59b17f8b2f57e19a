package shell

import (
	"slices"
	"strconv"
	"strings"
)

// bounds of the history, whatever HISTSIZE says: it is memory of the shell's own.
const (
	maxHistory     = 1000    // lines
	maxHistoryLine = 4 << 10 // bytes of one
)

// history is the list of commands that history and fc work on. A script's is empty until history -s adds to it, or set -o
// history has its lines kept. Forks share the lines, which are never changed in place.
type history struct {
	lines []string
	gone  int  // lines that were dropped at the front: the first has the number gone+1
	saved int  // how many lines history -a has written already, of those that are there
	own   bool // the last line is the command that runs
}

// with returns the history with a line added, cut to a size.
func (h history) with(line string, size int) history {
	if len(line) > maxHistoryLine {
		line = line[:maxHistoryLine]
	}
	h.lines = append(slices.Clip(h.lines), line)
	h.own = false
	if over := len(h.lines) - max(size, 0); over > 0 {
		h.lines, h.gone, h.saved = h.lines[over:], h.gone+over, max(h.saved-over, 0)
	}
	return h
}

// without returns the history with the lines from i to before j gone.
func (h history) without(i, j int) history {
	h.lines = slices.Delete(slices.Clone(h.lines), i, j)
	h.saved, h.own = min(h.saved, len(h.lines)), false
	return h
}

// historySize is how many lines are kept.
func (sh *shell) historySize() int {
	if s, ok := sh.get("HISTSIZE"); ok {
		if n, err := strconv.Atoi(s); err == nil && n >= 0 {
			return min(n, maxHistory)
		}
	}
	return maxHistory
}

// addHistory adds a line, unless HISTCONTROL or HISTIGNORE is against it.
func (sh *shell) addHistory(line string) bool {
	control := strings.Split(sh.getOr("HISTCONTROL", ""), ":")
	both := slices.Contains(control, "ignoreboth")
	last := ""
	if n := len(sh.history.lines); n > 0 {
		last = sh.history.lines[n-1]
	}
	switch {
	case (both || slices.Contains(control, "ignorespace")) && strings.HasPrefix(line, " "):
		return false
	case (both || slices.Contains(control, "ignoredups")) && line == last:
		return false
	}
	for _, p := range splitPatterns(sh.getOr("HISTIGNORE", "")) {
		if p != "" && sh.matches(p, line, false) {
			return false
		}
	}
	if slices.Contains(control, "erasedups") {
		h := sh.history
		h.lines = slices.DeleteFunc(slices.Clone(h.lines), func(l string) bool { return l == line })
		sh.history = h
	}
	sh.history = sh.history.with(line, sh.historySize())
	return true
}

// record adds a line of the script that is about to run.
func (sh *shell) record(text string) {
	if sh.inFunction() || sh.inSource() || sh.traceDepth > 0 {
		return
	}
	line := ""
	for part := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		switch {
		case line == "":
			line = part
		case opensMore(line):
			line += " " + part
		default:
			line += "; " + part
		}
	}
	if strings.TrimSpace(line) != "" && !strings.HasPrefix(strings.TrimSpace(line), "#") {
		sh.history.own = sh.addHistory(line)
	}
}

// opensMore says whether a command goes on after what a line ends with, so that no semicolon may follow.
func opensMore(line string) bool {
	line = strings.TrimRight(line, " \t")
	for _, end := range []string{"do", "then", "else", "in", "{", "(", "&&", "||", "|", ";", "&", "\\"} {
		if rest, ok := strings.CutSuffix(line, end); ok && (rest == "" || end[0] < 'a' || strings.HasSuffix(rest, " ") || strings.HasSuffix(rest, ";")) {
			return true
		}
	}
	return false
}

// dropOwn takes the command that runs off the list: history -s, fc -s and fc -l do not count themselves.
func (sh *shell) dropOwn() {
	if h := sh.history; h.own && len(h.lines) > 0 {
		sh.history = h.without(len(h.lines)-1, len(h.lines))
	}
}
