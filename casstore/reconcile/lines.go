package reconcile

import (
	"bytes"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// edit replaces the lines [from, to) of a base by the lines [start, end) of a side.
type edit struct {
	from, to, start, end int
	side                 int
}

// MergeLines merges two texts that were one, line by line: what only one side has changed is as that side has it. ok is
// false when both have changed the same lines, or lines next to each other, in different ways.
func MergeLines(base, mine, theirs []byte) (merged []byte, ok bool) {
	lines := [2][]string{linesOf(mine), linesOf(theirs)}
	old := linesOf(base)
	var edits []edit
	for side, text := range lines {
		for _, op := range difflib.NewMatcher(old, text).GetOpCodes() {
			if op.Tag != 'e' {
				edits = append(edits, edit{op.I1, op.I2, op.J1, op.J2, side})
			}
		}
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	var out strings.Builder
	at := 0
	for len(edits) > 0 {
		n := together(edits)
		text, ok := resultOf(edits[:n], old, lines)
		if !ok {
			return nil, false
		}
		write(&out, old[at:edits[0].from])
		write(&out, text)
		for _, e := range edits[:n] {
			at = max(at, e.to)
		}
		edits = edits[n:]
	}
	write(&out, old[at:])
	return []byte(out.String()), true
}

// together is how many of the edits touch, from the first on.
func together(edits []edit) int {
	n, end := 1, edits[0].to
	for n < len(edits) && edits[n].from <= end {
		end = max(end, edits[n].to)
		n++
	}
	return n
}

// resultOf is what edits that touch make of the lines from the first to the last of them. It is not ok when the two sides
// make different ones.
func resultOf(edits []edit, old []string, lines [2][]string) (text []string, ok bool) {
	from, to := edits[0].from, 0
	for _, e := range edits {
		to = max(to, e.to)
	}
	var results [][]string
	for side := range lines {
		var result []string
		at, touched := from, false
		for _, e := range edits {
			if e.side == side {
				result = append(append(result, old[at:e.from]...), lines[side][e.start:e.end]...)
				at, touched = e.to, true
			}
		}
		if touched {
			results = append(results, append(result, old[at:to]...))
		}
	}
	return results[0], len(results) == 1 || slices.Equal(results[0], results[1])
}

func linesOf(text []byte) (lines []string) {
	for line := range bytes.Lines(text) {
		lines = append(lines, string(line))
	}
	return lines
}

func write(out *strings.Builder, lines []string) {
	for _, line := range lines {
		out.WriteString(line)
	}
}
