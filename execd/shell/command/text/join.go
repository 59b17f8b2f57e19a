package text

import (
	"bytes"
	"context"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var joinOptions = getopt.New("1:2:a:e:ij:o:t:v:z", "ignore-case=i", "check-order", "nocheck-order", "header",
	"zero-terminated=z")

// joiner is what one join does.
type joiner struct {
	*tool.Call
	field    [2]int // from 0
	unpaired [2]bool
	paired   bool
	fold     bool
	header   bool
	delim    string // "" for blanks
	empty    string
	format   []joinField
	auto     bool
	widths   [2]int // of the first lines, for -o auto
	end      byte
	check    bool
	strict   bool // also while all lines have partners
	pair     [2]*sorted
}

// joinField is a field of the output: of a file, or the joint one when file is -1.
type joinField struct{ file, field int }

// row is a line in its fields.
type row [][]byte

func join(ctx context.Context, c *tool.Call) error {
	options, files, err := c.Options(joinOptions, 1)
	if err != nil {
		return err
	}
	j := &joiner{Call: c, paired: true, end: '\n', check: true}
	for _, o := range options {
		if err := j.set(o); err != nil {
			return err
		}
	}
	if err := twoFiles(c, files); err != nil {
		return err
	}
	pair, closing, err := openPair(ctx, c, files, j.end)
	if err != nil {
		return err
	}
	defer closing()
	for i, s := range pair {
		s.ordered = func(a, b []byte) bool { return j.compare(j.key(j.split(a), i), j.key(j.split(b), i)) <= 0 }
	}
	return j.run(ctx, pair, files)
}

func (j *joiner) set(o getopt.Option) error {
	n, err := strconv.Atoi(o.Value)
	switch o.Name {
	case "1", "2", "j":
		if err != nil || n < 1 {
			return j.Die(1, "invalid field number: '%s'", o.Value)
		}
		if o.Name != "2" {
			j.field[0] = n - 1
		}
		if o.Name != "1" {
			j.field[1] = n - 1
		}
	case "a", "v":
		if n != 1 && n != 2 {
			return j.Die(1, "invalid field number: '%s'", o.Value)
		}
		j.unpaired[n-1] = true
		j.paired = j.paired && o.Name == "a"
	case "e":
		j.empty = o.Value
	case "i":
		j.fold = true
	case "t":
		return j.setDelimiter(o.Value)
	case "z":
		j.end = 0
	case "header":
		j.header = true
	case "check-order":
		j.strict = true
	case "nocheck-order":
		j.check = false
	case "o":
		return j.setFormat(o.Value)
	}
	return nil
}

// setDelimiter reads -t: a character; \0 is a NUL, and with the empty text a whole line is one field.
func (j *joiner) setDelimiter(text string) error {
	switch {
	case text == "":
		text = "\n"
	case text == `\0`:
		text = "\x00"
	case len(text) > 1:
		return j.Die(1, "multi-character tab '%s'", text)
	}
	if j.delim != "" && j.delim != text {
		return j.Die(1, "incompatible tabs")
	}
	j.delim = text
	return nil
}

func (j *joiner) setFormat(list string) error {
	if list == "auto" {
		j.auto = true
		return nil
	}
	for _, item := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		if item == "0" {
			j.format = append(j.format, joinField{-1, 0})
			continue
		}
		file, field, dotted := strings.Cut(item, ".")
		n, err := strconv.Atoi(field)
		switch {
		case file != "1" && file != "2":
			return j.Die(1, "invalid file number in field spec: '%s'", item)
		case !dotted:
			return j.Die(1, "invalid field specifier: '%s'", item)
		case err != nil || n < 1:
			return j.Die(1, "invalid field number: '%s'", field)
		}
		j.format = append(j.format, joinField{int(file[0] - '1'), n - 1})
	}
	return nil
}

func (j *joiner) split(line []byte) row {
	if j.delim != "" {
		return bytes.Split(line, []byte(j.delim))
	}
	return bytes.Fields(line)
}

func (j *joiner) key(r row, file int) []byte {
	if f := j.field[file]; f < len(r) {
		return r[f]
	}
	return nil
}

func (j *joiner) compare(a, b []byte) int {
	if j.fold {
		return bytes.Compare(bytes.ToLower(a), bytes.ToLower(b))
	}
	return bytes.Compare(a, b)
}

// group reads the lines of a file that share a key.
func (j *joiner) group(s *sorted, file int, disorder func()) ([]row, error) {
	var rows []row
	for s.ok {
		r := j.split(s.line)
		if len(rows) > 0 && j.compare(j.key(rows[0], file), j.key(r, file)) != 0 {
			break
		}
		if err := j.Take(int64(len(s.line))); err != nil {
			return nil, err
		}
		for i := range r {
			r[i] = bytes.Clone(r[i])
		}
		rows = append(rows, r)
		if err := s.advance(disorder); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (j *joiner) run(ctx context.Context, pair [2]*sorted, files []string) error {
	j.pair = pair
	var rows [2][]row
	var disorder [2]func()
	for i, s := range pair {
		s.lenient = !j.strict
		disorder[i] = func() {
			if j.check {
				j.Fault("%s:%d: is not sorted: %s", files[i], s.n, s.line)
			}
		}
		if err := s.advance(func() {}); err != nil {
			return err
		}
		j.widths[i] = len(j.split(s.line))
	}
	if j.header {
		if err := j.heading(pair); err != nil {
			return err
		}
	}
	for {
		for i, s := range pair {
			if rows[i] == nil {
				var err error
				if rows[i], err = j.group(s, i, disorder[i]); err != nil {
					return err
				}
			}
		}
		if rows[0] == nil && rows[1] == nil {
			break
		}
		if err := j.Step(ctx, 1); err != nil {
			return err
		}
		if err := j.match(&rows); err != nil {
			return err
		}
	}
	if j.Status != 0 {
		j.Say("input is not in sorted order")
	}
	return nil
}

func (j *joiner) heading(pair [2]*sorted) error {
	var r [2]row
	for i, s := range pair {
		if s.ok {
			r[i] = j.split(append([]byte(nil), s.line...))
		}
	}
	if err := j.print(r[0], r[1]); err != nil {
		return err
	}
	for _, s := range pair {
		if err := s.advance(func() {}); err != nil {
			return err
		}
	}
	return nil
}

// match prints the groups with the lower key, and drops them.
func (j *joiner) match(rows *[2][]row) error {
	order := 0
	switch {
	case rows[1] == nil:
		order = -1
	case rows[0] == nil:
		order = 1
	default:
		order = j.compare(j.key(rows[0][0], 0), j.key(rows[1][0], 1))
	}
	switch {
	case order == 0:
		if j.paired {
			for _, a := range rows[0] {
				for _, b := range rows[1] {
					if err := j.print(a, b); err != nil {
						return err
					}
				}
			}
		}
		rows[0], rows[1] = nil, nil
		return nil
	case order < 0:
		return j.lone(rows, 0)
	}
	return j.lone(rows, 1)
}

func (j *joiner) lone(rows *[2][]row, file int) error {
	j.pair[0].lenient, j.pair[1].lenient = false, false
	if j.unpaired[file] {
		for _, r := range rows[file] {
			var both [2]row
			both[file] = r
			if err := j.print(both[0], both[1]); err != nil {
				return err
			}
		}
	}
	rows[file] = nil
	return nil
}

func (j *joiner) print(a, b row) error {
	format := j.format
	if format == nil {
		widths := [2]int{len(a), len(b)}
		if j.auto {
			widths = j.widths
		}
		format = append(format, joinField{-1, 0})
		for file, n := range widths {
			for f := range n {
				if f != j.field[file] {
					format = append(format, joinField{file, f})
				}
			}
		}
	}
	delim := j.delim
	if delim == "" {
		delim = " "
	}
	for i, f := range format {
		if i > 0 {
			_, _ = j.Out.WriteString(delim)
		}
		if text := j.value(f, a, b); len(text) > 0 {
			_, _ = j.Out.Write(text)
		} else {
			_, _ = j.Out.WriteString(j.empty)
		}
	}
	return j.Out.WriteByte(j.end)
}

func (j *joiner) value(f joinField, a, b row) []byte {
	if f.file < 0 {
		if a != nil {
			return j.key(a, 0)
		}
		return j.key(b, 1)
	}
	r := a
	if f.file == 1 {
		r = b
	}
	if f.field < len(r) {
		return r[f.field]
	}
	return nil
}
