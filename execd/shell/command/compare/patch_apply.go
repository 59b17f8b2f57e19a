package compare

import (
	"fmt"
	"strings"
)

// application is a file while hunks are put into it.
type application struct {
	*patcher
	lines   []string
	missing bool // the last line has no newline
	out     []string
	at      int // lines that have been copied to out
	shift   int // how far the last hunk was from where it said
}

func newApplication(p *patcher, data []byte) *application {
	a := &application{patcher: p}
	if len(data) == 0 {
		return a
	}
	text := string(data)
	a.missing = !strings.HasSuffix(text, "\n")
	a.lines = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return a
}

// old returns the lines that a hunk expects, without fuzz lines of context at either end.
func (h *hunk) old(fuzz int) (lines []string, front int) {
	from, to := h.trim(fuzz)
	for _, l := range h.lines[from:to] {
		if l.mark != '+' {
			lines = append(lines, l.text)
		}
	}
	return lines, from
}

// ends returns how many lines of context a hunk begins and ends with.
func (h *hunk) ends() (lead, trail int) {
	for lead < len(h.lines) && h.lines[lead].mark == ' ' {
		lead++
	}
	for trail < len(h.lines)-lead && h.lines[len(h.lines)-1-trail].mark == ' ' {
		trail++
	}
	return lead, trail
}

func (h *hunk) context() int {
	lead, trail := h.ends()
	return max(lead, trail)
}

// trim returns which lines of a hunk are left when up to fuzz lines of context are not looked at.
func (h *hunk) trim(fuzz int) (from, to int) {
	lead, trail := h.ends()
	context := max(lead, trail)
	from = max(fuzz+lead-context, 0)
	to = len(h.lines) - max(fuzz+trail-context, 0)
	if from > to {
		return 0, len(h.lines)
	}
	return from, to
}

// find looks for the place of a hunk, near where it should be first. It returns the line that the hunk's first line is
// at, or -1.
func (a *application) find(h *hunk, fuzz int) (at, front int) {
	want, front := h.old(fuzz)
	expected := h.start - 1 + a.shift + front
	if len(want) == 0 {
		if expected > len(a.lines) || expected < a.at {
			return -1, front
		}
		return expected - front, front
	}
	for offset := 0; offset <= max(len(a.lines), expected); offset++ {
		for _, pos := range []int{expected + offset, expected - offset} {
			if pos >= a.at && pos+len(want) <= len(a.lines) && a.matches(want, pos) {
				return pos - front, front
			}
			if offset == 0 {
				break
			}
		}
	}
	return -1, front
}

func (a *application) matches(want []string, pos int) bool {
	for i, text := range want {
		have := a.lines[pos+i]
		if have != text && !(a.spaces && strings.Join(strings.Fields(have), " ") == strings.Join(strings.Fields(text), " ")) {
			return false
		}
	}
	return true
}

// hunk puts a hunk in, and reports whether there was a place for it.
func (a *application) hunk(h *hunk, number int) (bool, error) {
	for fuzz := 0; fuzz <= min(a.fuzz, h.context()); fuzz++ {
		if err := a.Step(a.ctx, 1+len(a.lines)>>8); err != nil {
			return false, err
		}
		at, front := a.find(h, fuzz)
		if at < 0 {
			continue
		}
		a.put(h, at+front, fuzz)
		offset := at - (h.start - 1)
		a.shift = offset
		a.report(number, at+1, offset, fuzz)
		return true, nil
	}
	a.say("Hunk #%d FAILED at %d.\n", number, h.start)
	return false, nil
}

func (a *application) report(number, line, offset, fuzz int) {
	if offset == 0 && fuzz == 0 {
		return
	}
	text := fmt.Sprintf("Hunk #%d succeeded at %d", number, line)
	if fuzz > 0 {
		text += fmt.Sprintf(" with fuzz %d", fuzz)
	}
	if offset != 0 {
		unit := "lines"
		if offset == 1 {
			unit = "line"
		}
		text += fmt.Sprintf(" (offset %d %s)", offset, unit)
	}
	a.say("%s.\n", text)
}

// put copies the file up to a hunk's place and then what the hunk makes of it.
func (a *application) put(h *hunk, at, fuzz int) {
	a.out = append(a.out, a.lines[a.at:at]...)
	a.at = at
	from, to := h.trim(fuzz)
	for _, l := range h.lines[from:to] {
		switch l.mark {
		case ' ':
			a.out = append(a.out, a.lines[a.at]) // the file's own, whatever its blanks
			a.at++
		case '-':
			a.at++
		case '+':
			a.out = append(a.out, l.text)
		}
	}
	if a.at == len(a.lines) {
		a.missing = h.newEnd
	}
}

func (a *application) result() []byte {
	a.out = append(a.out, a.lines[a.at:]...)
	if len(a.out) == 0 {
		return nil
	}
	text := strings.Join(a.out, "\n")
	if !a.missing {
		text += "\n"
	}
	return []byte(text)
}
