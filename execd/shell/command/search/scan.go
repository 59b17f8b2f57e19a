package search

import (
	"bytes"
	"context"
	"strconv"
	"unicode/utf8"

	"github.com/carrelfs/carrel/execd/shell/command/regex"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// scan looks through texts, one after another.
type scan struct {
	*tool.Call
	ctx     context.Context
	re      *regex.Regexp
	never   bool // no pattern at all: nothing matches
	invert  bool
	count   bool
	list    byte // l names of files with matches, L without
	only    bool
	quiet   bool
	number  bool
	offset  bool
	column  bool // of the first match
	named   bool
	null    bool // a zero byte after a name
	tab     bool
	flush   bool
	color   bool
	context bool // of lines around those that match was asked for, be it none: it makes groups
	before  int
	after   int
	max     int         // matching lines of one text, -1 for all
	end     byte        // of a line
	binary  byte        // t as text, w without match, 0 says only that there is a match
	replace []byte      // rg -r
	between string      // what separates groups; "--" when empty
	joined  bool        // nothing does
	each    bool        // rg --count-matches: count matches, not lines
	zero    bool        // print counts of zero
	across  bool        // rg -U: a match may be of several lines
	pass    bool        // rg --passthru: lines that do not match are printed too
	trim    bool        // rg --trim: without the blanks that lines start with
	widest  int         // rg -M: longer lines are not shown; 0 for any
	preview bool        // but the start of them is
	low     []byte      // the present block in lower case, or nothing
	lines   *tool.Lines // one for all texts: most are small
	printed bool        // something of any text, for the separators between groups of lines

	text // of the one that is looked through
}

// text is the state of one text.
type text struct {
	name    string
	line    int   // number of the present line
	at      int64 // offset of the present line
	matches int
	trail   int // lines of context still to print
	held    [][]byte
	last    int     // number of the line that was printed last
	spans   [][]int // what is of matches in the present line, when across
	begun   int     // how many of them begin in it
	first   int     // column in which the first of them begins, in this line or in one before
	isBin   bool    // it holds what no text does
	binSaid bool
	some    bool // something of it was printed
}

// run looks through one text and reports whether it has what was looked for.
func (s *scan) run(in *tool.Input, name string) (bool, error) {
	s.text = text{name: name}
	if s.across {
		return s.runAcross(in)
	}
	if s.lines == nil {
		s.lines = s.Records(in, s.end)
	}
	lines := s.lines
	lines.Reset(in)
	for {
		block := lines.Block()
		if block == nil {
			break
		}
		if !s.isBin && s.binary != 't' && s.end != 0 && bytes.IndexByte(block, 0) >= 0 {
			s.isBin = true
			if s.binary == 'w' {
				return false, nil
			}
		}
		done, err := s.block(block)
		if err != nil {
			return s.found(), err
		}
		if done {
			break
		}
	}
	if lines.Err() != nil {
		return s.found(), lines.Err()
	}
	if s.max < -1 {
		s.max = -2 - s.max
	}
	return s.found(), s.finish()
}

// runAcross is run for matches that may be of several lines: the whole text is in memory.
func (s *scan) runAcross(in *tool.Input) (bool, error) {
	data, err := s.ReadAll(in)
	if err != nil {
		return false, err
	}
	defer func() { _ = s.Take(-int64(len(data))) }() // less never fails
	if s.isBin = s.binary != 't' && s.end != 0 && bytes.IndexByte(data, 0) >= 0; s.isBin && s.binary == 'w' {
		return false, nil
	}
	all, err := s.re.FindAll(data, -1)
	if err != nil {
		return false, err
	}
	for from, done := 0, false; from < len(data) && !done; {
		to := len(data)
		if i := bytes.IndexByte(data[from:], s.end); i >= 0 {
			to = from + i
		}
		for len(all) > 0 && all[0][1] <= from && all[0][0] < from {
			all = all[1:]
		}
		s.spans, s.begun = s.spans[:0], 0
		for _, loc := range all {
			if loc[0] > to {
				break
			}
			if loc[0] >= from {
				if s.begun++; s.begun == 1 && len(s.spans) == 0 {
					s.first = loc[0] - from + 1
				}
			}
			s.spans = append(s.spans, []int{max(loc[0], from) - from, min(loc[1], to) - from})
		}
		s.line, s.at = s.line+1, int64(from)
		if done, err = s.look(data[from:to]); err != nil {
			return s.found(), err
		}
		from = to + 1
	}
	if s.max < -1 {
		s.max = -2 - s.max
	}
	return s.found(), s.finish()
}

// locate finds the matches in a line.
func (s *scan) locate(line []byte) ([][]int, error) {
	if s.across {
		return s.spans, nil
	}
	return s.re.FindAll(line, -1)
}

// found says what counts as a match of the whole text.
func (s *scan) found() bool {
	return s.matches > 0
}

// block looks at whole lines; done says that the rest of the text does not matter.
func (s *scan) block(block []byte) (done bool, err error) {
	s.lower(block)
	for len(block) > 0 {
		if block = s.skip(block); len(block) == 0 {
			return false, nil
		}
		line, rest := block, []byte(nil)
		if i := bytes.IndexByte(block, s.end); i >= 0 {
			line, rest = block[:i], block[i+1:]
		}
		s.line++
		if done, err := s.look(line); done || err != nil {
			return done, err
		}
		s.at += int64(len(block) - len(rest))
		block = rest
	}
	return false, nil
}

// lower keeps a block in lower case beside it, where that lets lines be passed over: only of ASCII, whose letters have no
// other cases than their own.
func (s *scan) lower(block []byte) {
	s.low = s.low[:0]
	if s.never || len(s.re.Required()) > 0 || len(s.re.RequiredFold()) == 0 {
		return
	}
	for _, c := range block {
		if c >= utf8.RuneSelf {
			s.low = s.low[:0]
			return
		}
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		s.low = append(s.low, c)
	}
}

// skip passes over the lines that cannot match, where no context has to be kept.
func (s *scan) skip(block []byte) []byte {
	if s.never || s.invert || s.before > 0 || s.trail > 0 || s.pass {
		return block
	}
	need, in := s.re.Required(), block
	if len(need) == 0 {
		if len(s.low) < len(block) {
			return block
		}
		need, in = s.re.RequiredFold(), s.low[len(s.low)-len(block):]
	}
	i := bytes.Index(in, need)
	start := len(block)
	if i >= 0 {
		start = bytes.LastIndexByte(block[:i], s.end) + 1
	}
	if s.number || s.after > 0 || s.context { // groups that are apart are so by their lines' numbers
		s.line += bytes.Count(block[:start], []byte{s.end})
	}
	s.at += int64(start)
	return block[start:]
}

func (s *scan) look(line []byte) (done bool, err error) {
	if s.max < -1 { // only context follows
		return s.miss(line)
	}
	matches := len(s.spans) > 0
	if !s.never && !s.across {
		if matches, err = s.re.Match(line); err != nil {
			return false, err
		}
	}
	if matches == s.invert {
		return s.miss(line)
	}
	if s.max == 0 {
		return true, nil
	}
	if s.across && !s.invert {
		s.matches += s.begun
	} else {
		s.matches++
	}
	if s.quiet || s.list != 0 {
		return true, nil
	}
	if s.each && !s.invert && !s.across {
		all, err := s.re.FindAll(line, -1)
		if err != nil {
			return false, err
		}
		s.matches += len(all) - 1
	}
	if err := s.hit(line); err != nil {
		return false, err
	}
	if s.isBin && s.binSaid {
		return true, nil
	}
	if s.matches == s.max {
		if s.trail = s.after; s.trail == 0 || s.count {
			return true, nil
		}
		s.max = -2 - s.max
	}
	return false, nil
}

// miss deals with a line that is not selected.
func (s *scan) miss(line []byte) (done bool, err error) {
	if s.pass && !s.count && !s.only && s.list == 0 && !s.quiet {
		return false, s.print(line, '-', nil)
	}
	if s.trail > 0 && !s.count && !s.only {
		s.trail--
		if err := s.print(line, '-', nil); err != nil {
			return false, err
		}
		return s.max < -1 && s.trail == 0, nil
	}
	if s.before > 0 {
		if len(s.held) == s.before {
			_ = s.Take(-heldSize(s.held[0])) // less never fails
			copy(s.held, s.held[1:])
			s.held = s.held[:s.before-1]
		}
		if err := s.Take(heldSize(line)); err != nil {
			return false, err
		}
		s.held = append(s.held, bytes.Clone(line))
	}
	return false, nil
}

// heldSize is the memory of a line that is held: its bytes and what leads to them.
func heldSize(line []byte) int64 { return int64(len(line)) + 48 }

// hit prints a selected line with the context before it.
func (s *scan) hit(line []byte) error {
	if s.count {
		return nil
	}
	if s.binary != 't' && s.end != 0 && (s.isBin || !utf8.Valid(line)) {
		s.isBin, s.binSaid = true, true
		if err := s.Out.Flush(); err != nil {
			return err
		}
		s.Say("%s: binary file matches", s.name)
		return nil
	}
	if s.before > 0 || s.after > 0 || s.context {
		if first := s.line - len(s.held); s.printed && (!s.some || first > s.last+1) {
			s.separate()
		}
		number := s.line
		for i, held := range s.held {
			s.line = number - len(s.held) + i
			if !s.only {
				if err := s.print(held, '-', nil); err != nil {
					return err
				}
			}
		}
		for _, held := range s.held {
			_ = s.Take(-heldSize(held)) // less never fails
		}
		s.line, s.held, s.trail = number, s.held[:0], s.after
	}
	return s.show(line)
}

// separate prints what stands between groups of lines that are apart.
func (s *scan) separate() {
	switch {
	case s.joined:
	case s.between != "":
		_, _ = s.Out.WriteString(s.between + "\n")
	default:
		_, _ = s.Out.WriteString("--\n")
	}
}

// show prints a selected line, or the parts of it that matched.
func (s *scan) show(line []byte) error {
	if !s.only && s.replace == nil && !s.color && !s.column {
		return s.print(line, ':', nil)
	}
	if s.invert {
		if s.only {
			return nil
		}
		return s.print(line, ':', nil)
	}
	all, err := s.locate(line)
	if err != nil {
		return err
	}
	if !s.only {
		return s.print(s.decorate(line, all), ':', all)
	}
	at := s.at
	defer func() { s.at = at }()
	for _, loc := range all {
		if loc[0] == loc[1] {
			continue
		}
		s.at = at + int64(loc[0])
		part := line[loc[0]:loc[1]]
		if s.replace != nil {
			part = s.expand(nil, line, loc)
		}
		if err := s.print(part, ':', [][]int{loc}); err != nil {
			return err
		}
	}
	return nil
}

// decorate replaces the matches, or colors them.
func (s *scan) decorate(line []byte, all [][]int) []byte {
	if s.replace == nil && !s.color {
		return line
	}
	var out []byte
	at := 0
	for _, loc := range all {
		out = append(out, line[at:loc[0]]...)
		switch {
		case s.replace != nil:
			out = s.expand(out, line, loc)
		case loc[0] < loc[1]:
			out = append(append(append(out, "\x1b[01;31m\x1b[K"...), line[loc[0]:loc[1]]...), "\x1b[m\x1b[K"...)
		}
		at = loc[1]
	}
	return append(out, line[at:]...)
}

// expand appends the replacement with $1 and ${name} filled in.
func (s *scan) expand(out, line []byte, loc []int) []byte {
	for r := s.replace; len(r) > 0; {
		if r[0] != '$' || len(r) == 1 {
			out, r = append(out, r[0]), r[1:]
			continue
		}
		name, rest := replacementName(r[1:])
		if name == "" {
			out, r = append(out, '$'), r[1:]
			if len(r) > 0 && r[0] == '$' {
				r = r[1:]
			}
			continue
		}
		n, err := strconv.Atoi(name)
		if err != nil {
			n, _ = s.re.Group(name)
		}
		if 2*n+1 < len(loc) && loc[2*n] >= 0 {
			out = append(out, line[loc[2*n]:loc[2*n+1]]...)
		}
		r = rest
	}
	return out
}

func replacementName(r []byte) (name string, rest []byte) {
	if r[0] == '{' {
		if i := bytes.IndexByte(r, '}'); i > 0 {
			return string(r[1:i]), r[i+1:]
		}
		return "", r
	}
	i := 0
	for i < len(r) && (r[i] == '_' || r[i] >= '0' && r[i] <= '9' || r[i]|0x20 >= 'a' && r[i]|0x20 <= 'z') {
		i++
	}
	return string(r[:i]), r[i:]
}

func (s *scan) print(line []byte, separator byte, all [][]int) error {
	s.printed, s.some, s.last = true, true, s.line
	if s.named {
		_, _ = s.Out.WriteString(s.name)
		if s.null {
			_ = s.Out.WriteByte(0)
		} else {
			_ = s.Out.WriteByte(separator)
		}
	}
	if s.number {
		s.field(int64(s.line), separator)
	}
	if s.column && len(all) > 0 {
		column := all[0][0] + 1
		if s.across {
			column = s.first
		}
		s.field(int64(column), separator)
	}
	if s.offset {
		s.field(s.at, separator)
	}
	if s.tab {
		_ = s.Out.WriteByte('\t')
	}
	_, _ = s.Out.Write(s.shown(line, separator))
	err := s.Out.WriteByte(s.end)
	if s.flush {
		err = s.Out.Flush()
	}
	return err
}

// shown is what --trim and --max-columns leave of a line.
func (s *scan) shown(line []byte, separator byte) []byte {
	if s.trim {
		line = bytes.TrimLeft(line, " \t\n\v\f\r")
	}
	switch {
	case s.widest == 0 || len(line) < s.widest: // as rg counts, with the newline
		return line
	case s.preview:
		return append(line[:s.widest:s.widest], " [... omitted end of long line]"...)
	case separator == '-':
		return []byte("[Omitted long context line]")
	}
	return []byte("[Omitted long matching line]")
}

func (s *scan) field(n int64, separator byte) {
	_, _ = s.Out.Write(strconv.AppendInt(nil, n, 10))
	_ = s.Out.WriteByte(separator)
}

// finish prints what is known only at the end of a text.
func (s *scan) finish() error {
	switch {
	case s.quiet:
	case s.list != 0 && (s.list == 'l') == (s.matches > 0):
		_, _ = s.Out.WriteString(s.name)
		if s.null {
			return s.Out.WriteByte(0)
		}
		return s.Out.WriteByte('\n')
	case s.count && s.list == 0 && (s.zero || s.matches > 0):
		if s.named {
			_, _ = s.Out.WriteString(s.name)
			_ = s.Out.WriteByte(map[bool]byte{true: 0, false: ':'}[s.null])
		}
		_, err := s.Out.WriteString(strconv.Itoa(s.matches) + "\n")
		return err
	}
	return nil
}
