package git

import (
	"bytes"
	"strings"

	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/execd/shell/command/compare"
)

// binarySize is how much of a file git looks at to tell whether it is text.
const binarySize = 8000

func isBinary(data []byte) bool { return bytes.IndexByte(data[:min(len(data), binarySize)], 0) >= 0 }

// Marks of a place where a merge could not decide.
const (
	markOurs   = "<<<<<<< "
	markMiddle = "=======\n"
	markTheirs = ">>>>>>> "
)

// maxGap is how many lines that both sides have do not part two conflicts.
const maxGap = 3

// mergeText merges texts line by line, with marks where the sides clash: how often is returned.
func (g *call) mergeText(base, ours, theirs []byte, names [2]string) (merged []byte, clashes int, err error) {
	sides := [2][]string{linesOf(ours), linesOf(theirs)}
	var edits [2][]reconcile.Edit
	for i, text := range [][]byte{ours, theirs} {
		t, err := compare.NewTexts(g.ctx, g.Call, base, text)
		if err != nil {
			return nil, 0, err
		}
		for _, e := range t.Edits() {
			edits[i] = append(edits[i], reconcile.Edit{From: e.A, To: e.A + e.Deleted, Start: e.B, End: e.B + e.Inserted})
		}
	}
	if err := g.afford(int64(len(ours) + len(theirs))); err != nil {
		return nil, 0, err
	}
	var b bytes.Buffer
	for _, p := range reconcile.MergeEdits(linesOf(base), sides, edits) {
		if !p.Clash {
			writeLines(&b, p.Mine)
			continue
		}
		n, err := g.writeClash(&b, p, names)
		if err != nil {
			return nil, 0, err
		}
		clashes += n
	}
	return b.Bytes(), clashes, nil
}

// writeClash writes both sides of a clash, without the lines at its ends that they share, and in parts where they share
// enough in the middle.
func (g *call) writeClash(b *bytes.Buffer, p reconcile.Piece, names [2]string) (parts int, err error) {
	t, err := compare.NewTexts(g.ctx, g.Call, []byte(strings.Join(p.Mine, "")), []byte(strings.Join(p.Theirs, "")))
	if err != nil {
		return 0, err
	}
	edits := t.Edits()
	at := 0
	for len(edits) > 0 {
		n := 1
		for n < len(edits) && edits[n].A-edits[n-1].A-edits[n-1].Deleted <= maxGap {
			n++
		}
		first, last := edits[0], edits[n-1]
		writeLines(b, p.Mine[at:first.A])
		at = last.A + last.Deleted
		b.WriteString(markOurs + names[0] + "\n")
		writeSide(b, p.Mine[first.A:at])
		b.WriteString(markMiddle)
		writeSide(b, p.Theirs[first.B:last.B+last.Inserted])
		b.WriteString(markTheirs + names[1] + "\n")
		edits = edits[n:]
		parts++
	}
	writeLines(b, p.Mine[at:])
	return parts, nil
}

func linesOf(text []byte) (lines []string) {
	for line := range bytes.Lines(text) {
		lines = append(lines, string(line))
	}
	return lines
}

func writeLines(b *bytes.Buffer, lines []string) {
	for _, line := range lines {
		b.WriteString(line)
	}
}

// writeSide is writeLines, with a newline behind the last line: a mark follows.
func writeSide(b *bytes.Buffer, lines []string) {
	writeLines(b, lines)
	if n := len(lines); n > 0 && !strings.HasSuffix(lines[n-1], "\n") {
		b.WriteByte('\n')
	}
}
