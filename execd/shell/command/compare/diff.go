package compare

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/datetime"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/regex"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var diffOptions = getopt.New("aBbcC:deEF:iI:L:nNpqrstTuU:vwW:x:X:yZ0123456789", "text=a", "ignore-blank-lines=B",
	"ignore-space-change=b", "context::=c", "minimal=d", "ed=e", "ignore-tab-expansion=E", "ignore-case=i",
	"new-file=N", "show-c-function=p", "brief=q", "recursive=r", "report-identical-files=s", "expand-tabs=t",
	"initial-tab=T", "unified::=u", "width:=W", "exclude:=x", "exclude-from:=X", "side-by-side=y", "label:=L", "color::",
	"strip-trailing-cr", "ignore-all-space=w", "ignore-trailing-space=Z", "suppress-common-lines", "left-column",
	"no-dereference", "speed-large-files", "normal", "horizon-lines:", "no-ignore-file-name-case", "rcs=n",
	"ignore-matching-lines:=I", "show-function-line:=F")

// comparison is what one diff does.
type comparison struct {
	*tool.Call
	ctx                                                 context.Context
	style                                               byte // n normal, u, c, y, q, e, r
	context                                             int
	digits                                              int // -5 and -u0: the context, digit by digit
	fold, blanks, space, trailing, allSpace, carriage   bool
	tabs                                                bool // those that are expanded count as the blanks that they are
	recursive, newFile, identical, text, suppressCommon bool
	leftColumn, expand, initialTab                      bool
	ignorable                                           []string      // of -I
	ignored                                             *regex.Regexp // lines that do not count
	function                                            *regex.Regexp // a line that says what a hunk is in
	labels                                              []string
	exclude                                             []string
	width                                               int
	command                                             string // as diff -r prints it
	differ                                              bool
}

func diff(ctx context.Context, c *tool.Call) error {
	options, operands, err := c.Options(diffOptions, 2)
	if err != nil {
		return err
	}
	d := &comparison{Call: c, ctx: ctx, style: 'n', context: 3, width: 130}
	for _, o := range options {
		if err := d.set(o); err != nil {
			return err
		}
	}
	switch {
	case len(operands) == 0:
		return usage(c, "missing operand after '%s'", c.Args[len(c.Args)-1])
	case len(operands) == 1:
		return usage(c, "missing operand after '%s'", operands[0])
	case len(operands) > 2:
		return usage(c, "extra operand '%s'", operands[2])
	}
	d.command = "diff" + optionText(c.Args[1:], operands)
	if err := d.operands(operands[0], operands[1]); err != nil {
		return err
	}
	if c.Status == 0 && d.differ {
		c.Status = 1
	}
	return nil
}

// usage is what diff says of its arguments; it names itself twice.
func usage(c *tool.Call, format string, args ...any) error {
	c.Say(format, args...)
	return c.Die(2, "Try '%s --help' for more information.", c.Args[0])
}

// optionText is the options as they were given: diff -r repeats them above each pair.
func optionText(args, operands []string) string {
	var b strings.Builder
	for _, arg := range args {
		if arg != operands[0] && arg != operands[1] {
			b.WriteString(" " + arg)
		}
	}
	return b.String()
}

func (d *comparison) set(o getopt.Option) error {
	number := func(to *int) error {
		n, err := strconv.Atoi(o.Value)
		if err != nil || n < 0 {
			return d.Usage(2, "invalid context length '%s'", o.Value)
		}
		*to = n
		return nil
	}
	switch o.Name {
	case "u", "U", "c", "C":
		d.style = o.Name[0] | 0x20
		if o.Given {
			return number(&d.context)
		}
	case "y":
		d.style = 'y'
	case "q":
		d.style = 'q'
	case "e":
		d.style = 'e'
	case "n":
		d.style = 'r'
	case "0", "1", "2", "3", "4", "5", "6", "7", "8", "9":
		d.digits = min(d.digits*10+int(o.Name[0]-'0'), 1<<20)
		d.context = d.digits
	case "normal":
		d.style = 'n'
	case "W":
		return number(&d.width)
	case "i":
		d.fold = true
	case "B":
		d.blanks = true
	case "b":
		d.space = true
	case "w":
		d.allSpace = true
	case "Z":
		d.trailing = true
	case "E":
		d.tabs = true
	case "strip-trailing-cr":
		d.carriage = true
	case "r":
		d.recursive = true
	case "N":
		d.newFile = true
	case "s":
		d.identical = true
	case "a":
		d.text = true
	case "suppress-common-lines":
		d.suppressCommon = true
	case "left-column":
		d.leftColumn = true
	case "t":
		d.expand = true
	case "T":
		d.initialTab = true
	case "L":
		d.labels = append(d.labels, o.Value)
	case "I":
		d.ignorable = append(d.ignorable, o.Value)
		return d.pattern(&d.ignored, d.ignorable...)
	case "p":
		return d.pattern(&d.function, `^[[:alpha:]$_]`)
	case "F":
		return d.pattern(&d.function, o.Value)
	case "x":
		d.exclude = append(d.exclude, o.Value)
	case "X":
		data, err := d.ReadFile(d.ctx, o.Value)
		if err != nil {
			return d.Die(2, "%s: %s", o.Value, command.Reason(err))
		}
		d.exclude = append(d.exclude, strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")...)
	}
	return nil
}

func (d *comparison) pattern(to **regex.Regexp, exprs ...string) error {
	re, err := regex.CompileAny(exprs, regex.Options{Step: func(n int) error { return d.Step(d.ctx, 1+n>>6) }})
	if err != nil {
		return d.Die(2, "%s: %s", exprs[len(exprs)-1], err)
	}
	*to = re
	return nil
}

func (d *comparison) stat(name string) (vfs.Attr, error) {
	if name == "-" {
		return vfs.Attr{Type: vfs.TypeRegular}, nil
	}
	return d.FS.Stat(d.ctx, name)
}

func (d *comparison) trouble(name string, err error) error {
	if tool.Ends(d.ctx, err) {
		return err
	}
	d.Say("%s: %s", name, command.Reason(err))
	d.Status = 2
	return nil
}

func (d *comparison) operands(a, b string) error {
	x, errA := d.stat(a)
	y, errB := d.stat(b)
	if d.newFile {
		if errA != nil && errB == nil {
			x, errA = vfs.Attr{Type: y.Type}, nil
		}
		if errB != nil && errA == nil {
			y, errB = vfs.Attr{Type: x.Type}, nil
		}
	}
	if errA != nil || errB != nil {
		if errA != nil {
			if err := d.trouble(a, errA); err != nil {
				return err
			}
		}
		if errB != nil {
			return d.trouble(b, errB)
		}
		return nil
	}
	switch {
	case x.Type == vfs.TypeDir && y.Type == vfs.TypeDir:
		return d.dirs(a, b)
	case x.Type == vfs.TypeDir:
		a = path.Join(a, path.Base(b))
	case y.Type == vfs.TypeDir:
		b = path.Join(b, path.Base(a))
	}
	return d.files(a, b, "")
}

// dirs compares what two directories hold, in the order of names.
func (d *comparison) dirs(a, b string) error {
	entries := func(dir string) ([]vfs.Dirent, error) {
		list, err := d.FS.ReadDir(d.ctx, dir)
		if err != nil && d.newFile {
			return nil, nil
		}
		return list, err
	}
	x, err := entries(a)
	if err != nil {
		return d.trouble(a, err)
	}
	y, err := entries(b)
	if err != nil {
		return d.trouble(b, err)
	}
	for len(x) > 0 || len(y) > 0 {
		if err := d.Step(d.ctx, 2); err != nil {
			return err
		}
		switch {
		case len(y) == 0 || len(x) > 0 && x[0].Name < y[0].Name:
			err = d.only(a, b, x[0], true)
			x = x[1:]
		case len(x) == 0 || y[0].Name < x[0].Name:
			err = d.only(b, a, y[0], false)
			y = y[1:]
		default:
			err = d.pair(a, b, x[0], y[0])
			x, y = x[1:], y[1:]
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *comparison) excluded(name string) bool {
	for _, p := range d.exclude {
		if tool.Glob(p, name, false) {
			return true
		}
	}
	return false
}

func joined(dir, name string) string { return strings.TrimRight(dir, "/") + "/" + name }

// only deals with a name that is in one directory alone.
func (d *comparison) only(dir, other string, e vfs.Dirent, first bool) error {
	if d.excluded(e.Name) {
		return nil
	}
	d.differ = true
	if !d.newFile {
		_, err := fmt.Fprintf(d.Out, "Only in %s: %s\n", dir, e.Name)
		return err
	}
	here, there := joined(dir, e.Name), joined(other, e.Name)
	if !first {
		here, there = there, here
	}
	if e.Type == vfs.TypeDir {
		if d.recursive {
			return d.dirs(here, there)
		}
		return nil
	}
	return d.files(here, there, d.command+" "+here+" "+there+"\n")
}

func (d *comparison) pair(a, b string, x, y vfs.Dirent) error {
	if d.excluded(x.Name) {
		return nil
	}
	p, q := joined(a, x.Name), joined(b, y.Name)
	s, errA := d.FS.Stat(d.ctx, p)
	t, errB := d.FS.Stat(d.ctx, q)
	switch {
	case errA != nil:
		return d.trouble(p, errA)
	case errB != nil:
		return d.trouble(q, errB)
	case s.Type == vfs.TypeDir && t.Type == vfs.TypeDir:
		if d.recursive {
			return d.dirs(p, q)
		}
		_, err := fmt.Fprintf(d.Out, "Common subdirectories: %s and %s\n", p, q)
		return err
	case s.Type != t.Type:
		d.differ = true
		_, err := fmt.Fprintf(d.Out, "File %s is a %s while file %s is a %s\n", p, typeWords(s), q, typeWords(t))
		return err
	}
	return d.files(p, q, d.command+" "+p+" "+q+"\n")
}

func typeWords(a vfs.Attr) string {
	switch {
	case a.Type == vfs.TypeDir:
		return "directory"
	case a.Type == vfs.TypeRegular && a.Size == 0:
		return "regular empty file"
	case a.Type == vfs.TypeRegular:
		return "regular file"
	}
	return "special file"
}

// side is one of the two files.
type side struct {
	name    string
	label   string
	time    time.Time
	data    []byte
	lines   [][]byte
	missing bool // the last line has no newline
}

func (d *comparison) read(name string) (*side, error) {
	s := &side{name: name, label: name, time: d.Now()}
	if a, err := d.stat(name); err == nil && name != "-" {
		s.time = a.Mtime.Go()
	} else if err != nil && d.newFile {
		s.time = time.Unix(0, 0)
		return s, nil
	}
	data, err := d.ReadFile(d.ctx, name)
	if err != nil {
		return nil, err
	}
	return s, d.split(s, data)
}

// split gives a side its lines.
func (d *comparison) split(s *side, data []byte) error {
	s.data = data
	if err := d.Take(int64(bytes.Count(data, []byte{'\n'})) * 64); err != nil {
		return err
	}
	for len(data) > 0 {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			s.lines, s.missing = append(s.lines, data), true
			break
		}
		s.lines, data = append(s.lines, data[:i]), data[i+1:]
	}
	return nil
}

// files compares two files; heading is printed before any difference.
func (d *comparison) files(a, b, heading string) error {
	var sides [2]*side
	for i, name := range []string{a, b} {
		s, err := d.read(name)
		if err != nil {
			return d.trouble(name, err)
		}
		sides[i] = s
		if i < len(d.labels) {
			s.label = d.labels[i]
		}
	}
	x, y := sides[0], sides[1]
	same := bytes.Equal(x.data, y.data)
	if !same && !d.text && (binary(x.data) || binary(y.data)) {
		d.differ = true
		word := "Binary files"
		if d.style == 'q' {
			word = "Files"
		}
		_, err := fmt.Fprintf(d.Out, "%s %s and %s differ\n", word, a, b)
		return err
	}
	var changes []change
	if !same {
		ids := d.number(x, y)
		var err error
		if changes, err = edits(ids[0], ids[1], func(n int) error { return d.Step(d.ctx, n) }); err != nil {
			return err
		}
		if d.blanks || d.ignored != nil {
			if changes, err = d.counting(changes, x, y); err != nil {
				return err
			}
		}
	}
	if len(changes) == 0 && d.style != 'y' {
		if d.identical {
			_, err := fmt.Fprintf(d.Out, "Files %s and %s are identical\n", a, b)
			return err
		}
		return nil
	}
	d.differ = d.differ || len(changes) > 0
	if d.style == 'q' {
		_, err := fmt.Fprintf(d.Out, "Files %s and %s differ\n", a, b)
		return err
	}
	_, _ = d.Out.WriteString(heading)
	return d.print(x, y, changes)
}

func binary(data []byte) bool { return bytes.IndexByte(data[:min(len(data), 32<<10)], 0) >= 0 }

// number gives equal lines equal numbers. A last line without a newline equals none with one, unless blanks do not count.
func (d *comparison) number(x, y *side) [2][]int {
	ids := map[string]int{}
	var out [2][]int
	for n, s := range []*side{x, y} {
		for i, line := range s.lines {
			key := d.key(line)
			if s.missing && i == len(s.lines)-1 && !d.space && !d.allSpace && !d.trailing {
				key += "\n"
			}
			id, ok := ids[key]
			if !ok {
				id = len(ids)
				ids[key] = id
			}
			out[n] = append(out[n], id)
		}
	}
	return out
}

// key is what of a line counts.
func (d *comparison) key(line []byte) string {
	if d.carriage {
		line = bytes.TrimSuffix(line, []byte{'\r'})
	}
	if d.tabs {
		line = []byte(clip(string(line), math.MaxInt))
	}
	if d.trailing || d.space {
		line = bytes.TrimRight(line, " \t\r\v\f")
	}
	text := string(line)
	switch {
	case d.allSpace:
		text = strings.Join(strings.Fields(text), "")
	case d.space:
		fields := strings.Fields(text)
		lead := ""
		if len(text) > 0 && (text[0] == ' ' || text[0] == '\t') {
			lead = " "
		}
		text = lead + strings.Join(fields, " ")
	}
	if d.fold {
		text = strings.ToLower(text)
	}
	return text
}

// counting leaves out changes of nothing but lines that do not count.
func (d *comparison) counting(changes []change, x, y *side) (out []change, err error) {
	for _, c := range changes {
		counts := false
		for _, line := range slices.Concat(x.lines[c.a:c.a+c.deleted], y.lines[c.b:c.b+c.inserted]) {
			ignored := d.blanks && len(bytes.TrimSpace(line)) == 0
			if d.ignored != nil && !ignored {
				if ignored, err = d.ignored.Match(line); err != nil {
					return nil, err
				}
			}
			counts = counts || !ignored
		}
		if counts {
			out = append(out, c)
		}
	}
	return out, nil
}

func (d *comparison) stamp(s *side) string {
	return datetime.Format(s.time.In(d.Zone(d.ctx)), "%Y-%m-%d %H:%M:%S.%N %z")
}
