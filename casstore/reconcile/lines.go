package reconcile

import (
	"bytes"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// Edit says that a side has its lines [Start, End) where the base has the lines [From, To).
type Edit struct {
	From, To, Start, End int
}

// Piece is a run of lines of a merge.
type Piece struct {
	// Mine and Theirs are what the sides have there: the same, unless it is a Clash.
	Mine, Theirs []string
	Base         []string // what both had, of a Clash
	// Clash says that both sides have changed the same lines, or lines next to each other, in different ways.
	Clash bool
}

// sideEdit is an edit of one of the two sides.
type sideEdit struct {
	Edit
	side int
}

// MergeLines merges two texts that were one, line by line: what only one side has changed is as that side has it. ok is
// false when both have changed the same lines, or lines next to each other, in different ways.
func MergeLines(base, mine, theirs []byte) (merged []byte, ok bool) {
	sides := [2][]string{linesOf(mine), linesOf(theirs)}
	old := linesOf(base)
	var edits [2][]Edit
	for side, text := range sides {
		for _, op := range difflib.NewMatcher(old, text).GetOpCodes() {
			if op.Tag != 'e' {
				edits[side] = append(edits[side], Edit{op.I1, op.I2, op.J1, op.J2})
			}
		}
	}
	var out strings.Builder
	for _, p := range MergeEdits(old, sides, edits) {
		if p.Clash {
			return nil, false
		}
		write(&out, p.Mine)
	}
	return []byte(out.String()), true
}

// MergeEdits merges two sides, mine and theirs, by what each has changed in the lines that were the base of both. The edits
// of a side are in order and do not touch.
func MergeEdits(base []string, sides [2][]string, edits [2][]Edit) []Piece {
	var all []sideEdit
	for side, list := range edits {
		for _, e := range list {
			all = append(all, sideEdit{e, side})
		}
	}
	slices.SortStableFunc(all, func(a, b sideEdit) int { return a.From - b.From })
	var pieces []Piece
	same := func(lines []string) {
		if len(lines) > 0 {
			pieces = append(pieces, Piece{Mine: lines, Theirs: lines})
		}
	}
	at := 0
	for len(all) > 0 {
		n := together(all)
		same(base[at:all[0].From])
		p := resultOf(all[:n], base, sides)
		if p.Clash || len(p.Mine) > 0 {
			pieces = append(pieces, p)
		}
		for _, e := range all[:n] {
			at = max(at, e.To)
		}
		all = all[n:]
	}
	same(base[at:])
	return pieces
}

// together is how many of the edits touch, from the first on.
func together(edits []sideEdit) int {
	n, end := 1, edits[0].To
	for n < len(edits) && edits[n].From <= end {
		end = max(end, edits[n].To)
		n++
	}
	return n
}

// resultOf is what edits that touch make of the lines from the first to the last of them.
func resultOf(edits []sideEdit, base []string, sides [2][]string) Piece {
	from, to := edits[0].From, 0
	for _, e := range edits {
		to = max(to, e.To)
	}
	var results [2][]string
	var touched [2]bool
	for side := range sides {
		at := from
		for _, e := range edits {
			if e.side == side {
				results[side] = append(append(results[side], base[at:e.From]...), sides[side][e.Start:e.End]...)
				at, touched[side] = e.To, true
			}
		}
		results[side] = append(results[side], base[at:to]...)
	}
	switch {
	case !touched[1] || slices.Equal(results[0], results[1]):
		return Piece{Mine: results[0], Theirs: results[0]}
	case !touched[0]:
		return Piece{Mine: results[1], Theirs: results[1]}
	}
	return Piece{Mine: results[0], Theirs: results[1], Base: base[from:to], Clash: true}
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
