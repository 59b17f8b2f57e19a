package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

func (d *comparison) print(x, y *side, changes []change) error {
	switch d.style {
	case 'u':
		return d.unified(x, y, changes)
	case 'c':
		return d.contextual(x, y, changes)
	case 'y':
		return d.sideBySide(x, y, changes)
	case 'e':
		return d.ed(y, changes)
	case 'r':
		return d.rcs(y, changes)
	}
	return d.normal(x, y, changes)
}

// line prints a line after a mark, and says when its newline is missing.
func (d *comparison) line(mark string, s *side, i int) error {
	if d.initialTab {
		mark = strings.TrimSuffix(mark, " ") + "\t"
	}
	_, _ = d.Out.WriteString(mark)
	if d.expand {
		_, _ = d.Out.WriteString(clip(string(s.lines[i]), math.MaxInt))
	} else {
		_, _ = d.Out.Write(s.lines[i])
	}
	if s.missing && i == len(s.lines)-1 {
		_, err := d.Out.WriteString("\n\\ No newline at end of file\n")
		return err
	}
	return d.Out.WriteByte('\n')
}

func (d *comparison) lines(mark string, s *side, from, n int) error {
	for i := from; i < from+n; i++ {
		if err := d.line(mark, s, i); err != nil {
			return err
		}
	}
	return nil
}

// span writes lines from a+1 on as normal diffs name them: n alone, or n,m; with none, the line before.
func span(a, n int) string {
	switch n {
	case 0:
		return strconv.Itoa(a)
	case 1:
		return strconv.Itoa(a + 1)
	}
	return fmt.Sprintf("%d,%d", a+1, a+n)
}

func (d *comparison) normal(x, y *side, changes []change) error {
	for _, c := range changes {
		letter := "c"
		switch {
		case c.deleted == 0:
			letter = "a"
		case c.inserted == 0:
			letter = "d"
		}
		fmt.Fprintf(d.Out, "%s%s%s\n", span(c.a, c.deleted), letter, span(c.b, c.inserted))
		if err := d.lines("< ", x, c.a, c.deleted); err != nil {
			return err
		}
		if letter == "c" {
			_, _ = d.Out.WriteString("---\n")
		}
		if err := d.lines("> ", y, c.b, c.inserted); err != nil {
			return err
		}
	}
	return nil
}

// ed writes a script for ed(1): the last change first.
func (d *comparison) ed(y *side, changes []change) error {
	for i := len(changes) - 1; i >= 0; i-- {
		c := changes[i]
		if c.inserted == 0 {
			fmt.Fprintf(d.Out, "%sd\n", span(c.a, c.deleted))
			continue
		}
		letter := "c"
		if c.deleted == 0 {
			letter = "a"
		}
		fmt.Fprintf(d.Out, "%s%s\n", span(c.a, c.deleted), letter)
		for j := c.b; j < c.b+c.inserted; j++ {
			_, _ = d.Out.Write(y.lines[j])
			_ = d.Out.WriteByte('\n')
		}
		if _, err := d.Out.WriteString(".\n"); err != nil {
			return err
		}
	}
	return nil
}

// rcs writes what RCS keeps: which lines go, and which come after which.
func (d *comparison) rcs(y *side, changes []change) error {
	for _, c := range changes {
		if c.deleted > 0 {
			fmt.Fprintf(d.Out, "d%d %d\n", c.a+1, c.deleted)
		}
		if c.inserted == 0 {
			continue
		}
		fmt.Fprintf(d.Out, "a%d %d\n", c.a+c.deleted, c.inserted)
		for j := c.b; j < c.b+c.inserted; j++ {
			_, _ = d.Out.Write(y.lines[j])
			if y.missing && j == len(y.lines)-1 {
				break
			}
			if err := d.Out.WriteByte('\n'); err != nil {
				return err
			}
		}
	}
	return nil
}

// within names what a hunk is in, for -p and -F: the last line before it that says so.
func (d *comparison) within(before [][]byte) string {
	if d.function == nil {
		return ""
	}
	for _, line := range slices.Backward(before) {
		if ok, _ := d.function.Match(line); ok {
			line = line[:min(len(line), 40)]
			return " " + strings.TrimRight(string(line), " \t\r\v\f")
		}
	}
	return ""
}

// hunks groups changes that are so near that their context meets.
func (d *comparison) hunks(changes []change) [][]change {
	var out [][]change
	for _, c := range changes {
		if n := len(out); n > 0 {
			last := out[n-1][len(out[n-1])-1]
			if c.a-(last.a+last.deleted) <= 2*d.context {
				out[n-1] = append(out[n-1], c)
				continue
			}
		}
		out = append(out, []change{c})
	}
	return out
}

// bounds returns which lines of both files a hunk shows.
func (d *comparison) bounds(h []change, x, y *side) (alo, ahi, blo, bhi int) {
	first, last := h[0], h[len(h)-1]
	before := min(d.context, first.a)
	alo, blo = first.a-before, first.b-before
	ahi, bhi = last.a+last.deleted, last.b+last.inserted
	after := min(d.context, len(x.lines)-ahi)
	return alo, ahi + after, blo, min(bhi+after, len(y.lines))
}

func (d *comparison) heading(x, y *side, a, b string) {
	for i, s := range []*side{x, y} {
		mark := a
		if i == 1 {
			mark = b
		}
		if len(d.labels) > i {
			fmt.Fprintf(d.Out, "%s %s\n", mark, s.label)
		} else {
			fmt.Fprintf(d.Out, "%s %s\t%s\n", mark, s.label, d.stamp(s))
		}
	}
}

// unifiedSpan is start,length; the length 1 is left out, and a span of nothing starts at the line before.
func unifiedSpan(lo, hi int) string {
	switch hi - lo {
	case 0:
		return fmt.Sprintf("%d,0", lo)
	case 1:
		return strconv.Itoa(lo + 1)
	}
	return fmt.Sprintf("%d,%d", lo+1, hi-lo)
}

func (d *comparison) unified(x, y *side, changes []change) error {
	d.heading(x, y, "---", "+++")
	return d.unifiedHunks(x, y, changes, d.within)
}

// unifiedHunks prints the hunks of a unified diff; section names what a hunk is in, by the lines before it.
func (d *comparison) unifiedHunks(x, y *side, changes []change, section func(before [][]byte) string) error {
	for _, h := range d.hunks(changes) {
		alo, ahi, blo, bhi := d.bounds(h, x, y)
		fmt.Fprintf(d.Out, "@@ -%s +%s @@%s\n", unifiedSpan(alo, ahi), unifiedSpan(blo, bhi), section(x.lines[:alo]))
		at := alo
		for _, c := range h {
			_ = d.lines(" ", x, at, c.a-at)
			_ = d.lines("-", x, c.a, c.deleted)
			if err := d.lines("+", y, c.b, c.inserted); err != nil {
				return err
			}
			at = c.a + c.deleted
		}
		if err := d.lines(" ", x, at, ahi-at); err != nil {
			return err
		}
	}
	return nil
}

func contextSpan(lo, hi int) string {
	if hi-lo <= 1 {
		return strconv.Itoa(hi)
	}
	return fmt.Sprintf("%d,%d", lo+1, hi)
}

func (d *comparison) contextual(x, y *side, changes []change) error {
	d.heading(x, y, "***", "---")
	for _, h := range d.hunks(changes) {
		alo, ahi, blo, bhi := d.bounds(h, x, y)
		deletes, inserts := false, false
		for _, c := range h {
			deletes, inserts = deletes || c.deleted > 0, inserts || c.inserted > 0
		}
		fmt.Fprintf(d.Out, "***************%s\n*** %s ****\n", d.within(x.lines[:alo]), contextSpan(alo, ahi))
		if deletes {
			at := alo
			for _, c := range h {
				_ = d.lines("  ", x, at, c.a-at)
				_ = d.lines(contextMark(c, "- "), x, c.a, c.deleted)
				at = c.a + c.deleted
			}
			_ = d.lines("  ", x, at, ahi-at)
		}
		fmt.Fprintf(d.Out, "--- %s ----\n", contextSpan(blo, bhi))
		if inserts {
			at := blo
			for _, c := range h {
				_ = d.lines("  ", y, at, c.b-at)
				_ = d.lines(contextMark(c, "+ "), y, c.b, c.inserted)
				at = c.b + c.inserted
			}
			if err := d.lines("  ", y, at, bhi-at); err != nil {
				return err
			}
		}
	}
	return nil
}

func contextMark(c change, alone string) string {
	if c.deleted > 0 && c.inserted > 0 {
		return "! "
	}
	return alone
}

// sideBySide prints two columns with a mark between them. The geometry is GNU's: columns end at tab stops.
func (d *comparison) sideBySide(x, y *side, changes []change) error {
	const gutter = 3
	tab := 8
	if d.expand {
		tab = 1
	}
	off := (d.width + tab + gutter) / (2 * tab) * tab
	half := max(0, min(off-gutter, d.width-off))
	second := off
	if half == 0 {
		second = d.width
	}
	middle := (half + second - 1) / 2
	row := func(left, right []byte, mark byte, hasRight bool) error {
		text := clip(string(left), half)
		at := utf8.RuneCountInString(text)
		out := text
		if mark != ' ' {
			out += d.blanksTo(at, middle) + string(mark)
			at = middle + 1
		}
		if hasRight {
			if r := clip(string(right), half); r != "" {
				out += d.blanksTo(at, second) + r
			}
		}
		_, err := d.Out.WriteString(out + "\n")
		return err
	}
	i, j := 0, 0
	common := func(to int) error {
		for ; i < to; i, j = i+1, j+1 {
			if d.suppressCommon {
				continue
			}
			mark := byte(' ')
			if d.leftColumn {
				mark = '('
			}
			if err := row(x.lines[i], y.lines[j], mark, !d.leftColumn); err != nil {
				return err
			}
		}
		return nil
	}
	for _, c := range changes {
		if err := common(c.a); err != nil {
			return err
		}
		for k := range max(c.deleted, c.inserted) {
			var err error
			switch {
			case k < c.deleted && k < c.inserted:
				err = row(x.lines[c.a+k], y.lines[c.b+k], '|', true)
			case k < c.deleted:
				err = row(x.lines[c.a+k], nil, '<', false)
			default:
				err = row(nil, y.lines[c.b+k], '>', true)
			}
			if err != nil {
				return err
			}
		}
		i, j = c.a+c.deleted, c.b+c.inserted
	}
	return common(len(x.lines))
}

func clip(text string, width int) string {
	var b strings.Builder
	column := 0
	for _, r := range text {
		n := 1
		if r == '\t' {
			n = 8 - column%8
		}
		if column += n; column > width {
			break
		}
		if r == '\t' {
			b.WriteString(strings.Repeat(" ", n))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (d *comparison) blanksTo(from, to int) string {
	if d.expand {
		return strings.Repeat(" ", max(to-from, 0))
	}
	return tabs(from, to)
}

// tabs moves from one column to another by tabs, then spaces.
func tabs(from, to int) string {
	var b strings.Builder
	for next := from - from%8 + 8; next <= to; next += 8 {
		b.WriteByte('\t')
		from = next
	}
	b.WriteString(strings.Repeat(" ", max(to-from, 0)))
	return b.String()
}
