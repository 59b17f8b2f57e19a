package compare

import (
	"fmt"
	"strconv"
	"strings"
)

// filePatch is what a patch does to one file.
type filePatch struct {
	old, new string // names as they stand in the patch
	hunks    []hunk
	git      bool
	mode     uint32 // of a new file, or 0
	rename   bool
}

// hunk is one place that changes.
type hunk struct {
	start      int // line of the old file, from 1; the line before when nothing is deleted
	lines      []patchLine
	oldEnd     bool // the last old line has no newline
	newEnd     bool
	newStart   int
	oldN, newN int
}

// patchLine is a line with its mark: ' ', '-' or '+'.
type patchLine struct {
	mark byte
	text string
}

// patchReader reads unified and normal diffs.
type patchReader struct {
	lines []string
	at    int
}

func (r *patchReader) peek() (string, bool) {
	if r.at >= len(r.lines) {
		return "", false
	}
	return r.lines[r.at], true
}

// parsePatch returns what a patch does, file by file. What is no diff is passed over.
func parsePatch(text string) ([]filePatch, error) {
	r := &patchReader{lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	var files []filePatch
	var pending filePatch
	for r.at < len(r.lines) {
		line := r.lines[r.at]
		switch {
		case strings.HasPrefix(line, "diff --git "):
			if pending.git && pending.rename {
				files = append(files, pending)
			}
			pending = filePatch{git: true}
			r.at++
		case strings.HasPrefix(line, "rename from "):
			pending.old, pending.rename = "a/"+line[len("rename from "):], true
			r.at++
		case strings.HasPrefix(line, "rename to "):
			pending.new, pending.rename = "b/"+line[len("rename to "):], true
			r.at++
		case strings.HasPrefix(line, "new file mode "):
			mode, _ := strconv.ParseUint(strings.TrimSpace(line[len("new file mode "):]), 8, 32)
			pending.mode = uint32(mode) & 0o777
			r.at++
		case strings.HasPrefix(line, "--- ") && r.at+1 < len(r.lines) && strings.HasPrefix(r.lines[r.at+1], "+++ "):
			pending.old, pending.new = patchName(line[4:]), patchName(r.lines[r.at+1][4:])
			r.at += 2
			if err := r.unified(&pending); err != nil {
				return nil, err
			}
			files = append(files, pending)
			pending = filePatch{}
		case isNormal(line):
			f := filePatch{}
			if err := r.normal(&f); err != nil {
				return nil, err
			}
			files = append(files, f)
		default:
			r.at++
		}
	}
	if pending.rename {
		files = append(files, pending)
	}
	return files, nil
}

// patchName cuts the time after a tab off.
func patchName(s string) string {
	name, _, _ := strings.Cut(s, "\t")
	if unquoted, err := strconv.Unquote(name); err == nil && strings.HasPrefix(name, `"`) {
		name = unquoted
	}
	return strings.TrimRight(name, " \r")
}

func (r *patchReader) unified(f *filePatch) error {
	for {
		line, ok := r.peek()
		if !ok || !strings.HasPrefix(line, "@@ ") {
			return nil
		}
		h := hunk{oldN: 1, newN: 1}
		fields := strings.Fields(line)
		if len(fields) < 3 || !scanSpan(fields[1], '-', &h.start, &h.oldN) || !scanSpan(fields[2], '+', &h.newStart, &h.newN) {
			return fmt.Errorf("malformed patch at line %d: %s", r.at+1, line)
		}
		if h.oldN == 0 {
			h.start++
		}
		r.at++
		if err := r.hunkLines(&h); err != nil {
			return err
		}
		f.hunks = append(f.hunks, h)
	}
}

func scanSpan(text string, mark byte, start, n *int) bool {
	if text == "" || text[0] != mark {
		return false
	}
	a, b, two := strings.Cut(text[1:], ",")
	var err error
	if *start, err = strconv.Atoi(a); err == nil && two {
		*n, err = strconv.Atoi(b)
	}
	return err == nil && *start >= 0 && *n >= 0
}

func (r *patchReader) hunkLines(h *hunk) error {
	for old, new := h.oldN, h.newN; old > 0 || new > 0; {
		line, ok := r.peek()
		if !ok {
			return fmt.Errorf("unexpected end of file in patch")
		}
		mark, text := byte(' '), ""
		if line != "" {
			mark, text = line[0], line[1:]
		}
		switch mark {
		case ' ':
			old, new = old-1, new-1
		case '\t':
			mark, text = ' ', line
			old, new = old-1, new-1
		case '-':
			old--
		case '+':
			new--
		case '\\':
			r.noNewline(h)
			continue
		default:
			return fmt.Errorf("malformed patch at line %d: %s", r.at+1, line)
		}
		if old < 0 || new < 0 {
			return fmt.Errorf("malformed patch at line %d: %s", r.at+1, line)
		}
		h.lines = append(h.lines, patchLine{mark, text})
		r.at++
	}
	if line, ok := r.peek(); ok && strings.HasPrefix(line, "\\") {
		r.noNewline(h)
	}
	return nil
}

func (r *patchReader) noNewline(h *hunk) {
	r.at++
	if len(h.lines) == 0 {
		return
	}
	switch h.lines[len(h.lines)-1].mark {
	case ' ':
		h.oldEnd, h.newEnd = true, true
	case '-':
		h.oldEnd = true
	case '+':
		h.newEnd = true
	}
}

// isNormal says whether a line is a command of a normal diff.
func isNormal(line string) bool {
	_, _, _, _, _, ok := normalCommand(line)
	return ok
}

func normalCommand(line string) (a, b, c, d int, letter byte, ok bool) {
	i := strings.IndexAny(line, "acd")
	if i <= 0 {
		return
	}
	span := func(text string) (lo, hi int, ok bool) {
		x, y, two := strings.Cut(text, ",")
		lo, err := strconv.Atoi(x)
		if hi = lo; err == nil && two {
			hi, err = strconv.Atoi(y)
		}
		return lo, hi, err == nil
	}
	a, b, ok1 := span(line[:i])
	c, d, ok2 := span(line[i+1:])
	return a, b, c, d, line[i], ok1 && ok2
}

func (r *patchReader) normal(f *filePatch) error {
	for {
		line, ok := r.peek()
		if !ok {
			return nil
		}
		a, b, c, d, letter, ok := normalCommand(line)
		if !ok {
			return nil
		}
		r.at++
		h := hunk{start: a, newStart: c}
		if letter == 'a' {
			h.start++
		} else {
			h.oldN = b - a + 1
		}
		if letter != 'd' {
			h.newN = d - c + 1
		}
		for r.at < len(r.lines) {
			line := r.lines[r.at]
			switch {
			case strings.HasPrefix(line, "< "):
				h.lines = append(h.lines, patchLine{'-', line[2:]})
			case strings.HasPrefix(line, "> "):
				h.lines = append(h.lines, patchLine{'+', line[2:]})
			case strings.HasPrefix(line, "\\"):
				r.noNewline(&h)
				continue
			case line != "---":
				goto done
			}
			r.at++
		}
	done:
		f.hunks = append(f.hunks, h)
	}
}

// reverse turns a patch round.
func (f *filePatch) reverse() {
	f.old, f.new = f.new, f.old
	for i := range f.hunks {
		h := &f.hunks[i]
		h.start, h.newStart = h.newStart, h.start
		if h.newN == 0 {
			h.start++
		}
		h.oldN, h.newN = h.newN, h.oldN
		h.oldEnd, h.newEnd = h.newEnd, h.oldEnd
		for j := range h.lines {
			switch h.lines[j].mark {
			case '-':
				h.lines[j].mark = '+'
			case '+':
				h.lines[j].mark = '-'
			}
		}
	}
}
