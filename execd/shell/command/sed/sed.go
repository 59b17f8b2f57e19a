package sed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/regex"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// Command is sed.
var Command = tool.Command(sed)

var options = getopt.New("bsi::nrEue:f:l:z", "quiet=n", "silent=n", "expression:=e", "file:=f", "in-place::=i",
	"line-length:=l", "null-data=z", "zero-terminated=z", "separate=s", "regexp-extended=E", "unbuffered=u", "posix", "sandbox",
	"follow-symlinks", "binary=b", "debug")

// Knows says of arguments which option sed has not.
var Knows = tool.Knows(options)

// editor is what one sed does.
type editor struct {
	*tool.Call
	ctx      context.Context
	scripts  []fragment
	silent   bool
	separate bool
	inPlace  bool
	suffix   string
	extended bool
	flush    bool
	width    int
	end      byte
}

// fragment is a part of the script: of an -e, or of a file.
type fragment struct {
	text  string
	where string // how messages name it
	file  bool
}

func sed(ctx context.Context, c *tool.Call) error {
	found, operands, err := options.Parse(c.Args[1:])
	if about := c.About(options, err); about != nil {
		return about
	}
	if err != nil {
		c.Say("%s", err)
		return usage(c)
	}
	e := &editor{Call: c, ctx: ctx, width: 70, end: '\n'}
	for _, o := range found {
		if err := e.set(o); err != nil {
			return err
		}
	}
	if len(e.scripts) == 0 {
		if len(operands) == 0 {
			return usage(c)
		}
		e.add(operands[0])
		operands = operands[1:]
	}
	return e.run(operands)
}

func usage(c *tool.Call) error {
	fmt.Fprintf(c.Stderr, "Usage: %s [OPTION]... {script-only-if-no-other-script} [input-file]...\n", c.Args[0])
	return tool.Exit(1)
}

func (e *editor) add(text string) {
	n := 1
	for _, f := range e.scripts {
		if !f.file {
			n++
		}
	}
	e.scripts = append(e.scripts, fragment{text: text, where: fmt.Sprintf("-e expression #%d", n)})
}

func (e *editor) set(o getopt.Option) error {
	switch o.Name {
	case "n":
		e.silent = true
	case "e":
		e.add(o.Value)
	case "f":
		data, err := e.ReadFile(e.ctx, o.Value)
		if err != nil {
			return e.Die(4, "couldn't open file %s: %s", o.Value, command.Reason(err))
		}
		text := strings.TrimSuffix(string(data), "\n")
		if strings.HasPrefix(text, "#!") {
			_, text, _ = strings.Cut(text, "\n")
		}
		e.scripts = append(e.scripts, fragment{text: text, where: "file " + o.Value, file: true})
	case "E", "r":
		e.extended = true
	case "s":
		e.separate = true
	case "i":
		e.inPlace, e.separate, e.suffix = true, true, o.Value
	case "z":
		e.end = 0
	case "u":
		e.flush = true
	case "l":
		n, err := strconv.Atoi(o.Value)
		if err != nil || n < 0 {
			return e.Die(1, "invalid line length: %s", o.Value)
		}
		e.width = n
	}
	return nil
}

// source joins the fragments, and returns what names a position in them.
func (e *editor) source() (text string, where func(pos int) string) {
	var starts []int
	for i, f := range e.scripts {
		if i > 0 {
			text += "\n"
		}
		starts = append(starts, len(text))
		text += f.text
	}
	return text, func(pos int) string {
		i := len(starts) - 1
		for i > 0 && starts[i] > pos {
			i--
		}
		f := e.scripts[i]
		inside := f.text[:min(pos-starts[i], len(f.text))]
		if f.file {
			return f.where + " line " + strconv.Itoa(1+strings.Count(inside, "\n"))
		}
		return f.where + ", char " + strconv.Itoa(len(inside))
	}
}

func (e *editor) compile(s *sinks) (*program, error) {
	text, where := e.source()
	p := &parser{src: text, where: where, sinks: s, options: regex.Options{
		Escapes: true, Step: func(n int) error { return e.Step(e.ctx, 1+n>>6) },
	}}
	if e.extended {
		p.options.Syntax = regex.Extended
	}
	prog, err := p.parse()
	var exit tool.Exit
	if err != nil && !errors.As(err, &exit) {
		status := 1
		if errors.Is(err, errLabel) {
			status = 4
		}
		return nil, e.Die(status, "%s", err)
	}
	return prog, err
}

func (e *editor) run(names []string) (err error) {
	out := &sink{w: e.Out, end: e.end}
	s := &sinks{ctx: e.ctx, call: e.Call, out: out, end: e.end, files: map[string]*sink{}}
	defer func() {
		if closeErr := s.close(); err == nil {
			err = closeErr
		}
	}()
	prog, err := e.compile(s)
	if err != nil {
		return err
	}
	m := &machine{
		Call: e.Call, ctx: e.ctx, program: prog, out: out, silent: e.silent || prog.silent, flush: e.flush, width: e.width,
		end: e.end, readers: map[string]*tool.Lines{},
	}
	if len(names) == 0 {
		names = []string{"-"}
	}
	if !e.separate {
		return e.quiet(m.over(e.input(names)))
	}
	for _, name := range names {
		if err := e.one(m, name); err != nil {
			return e.quiet(err)
		}
	}
	return nil
}

func (e *editor) input(names []string) *input {
	return &input{ctx: e.ctx, call: e.Call, names: names, end: e.end}
}

// quiet takes the way out of q for what it is, and says errors of the script's run.
func (e *editor) quiet(err error) error {
	if errors.Is(err, errQuit) {
		return nil
	}
	return err
}

func (m *machine) over(in *input) error {
	m.in = in
	return m.run()
}

// one edits a file on its own; lines are counted on from file to file only without -i and -s.
func (e *editor) one(m *machine, name string) error {
	if !e.inPlace {
		return m.over(e.input([]string{name}))
	}
	a, err := e.FS.Stat(e.ctx, name)
	if err != nil {
		e.Say("can't read %s: %s", name, command.Reason(err))
		e.Status = 2
		return nil
	}
	if a.Type != vfs.TypeRegular {
		e.Say("couldn't edit %s: not a regular file", name)
		e.Status = 4
		return nil
	}
	temp, f, err := e.temporary(name, a)
	if err != nil {
		return e.Die(4, "couldn't open temporary file %s: %s", temp, command.Reason(err))
	}
	m.out.w, m.out.missing = bufio.NewWriterSize(f, 64<<10), false
	runErr := m.over(e.input([]string{name}))
	if errors.Is(runErr, errQuit) {
		runErr = m.rest(runErr)
	}
	err = m.out.w.Flush()
	_ = f.Close()
	m.out.w = e.Out
	if err == nil && (runErr == nil || errors.Is(runErr, errQuit)) {
		err = e.replace(name, temp)
	}
	if err != nil || runErr != nil && !errors.Is(runErr, errQuit) {
		_ = e.FS.Remove(context.WithoutCancel(e.ctx), temp)
	}
	return errors.Join(err, runErr)
}

// rest copies what q has left unread: an edit in place loses nothing.
func (m *machine) rest(quit error) error {
	for {
		line, ok, err := m.in.next()
		if err != nil {
			return err
		}
		if !ok {
			return quit
		}
		if err := m.out.line(line, m.in.whole); err != nil {
			return err
		}
	}
}

// temporary makes a file beside name with its mode and owner.
func (e *editor) temporary(name string, a vfs.Attr) (string, *treepath.File, error) {
	for range 100 {
		temp := path.Join(path.Dir(name), fmt.Sprintf("sed%06d", e.Rand.IntN(1_000_000)))
		f, err := e.FS.OpenFile(e.ctx, temp, treepath.Write|treepath.Create|treepath.Exclusive, 0o600)
		if errors.Is(err, vfs.ErrExist) {
			continue
		}
		if err == nil {
			_ = e.FS.Chown(e.ctx, temp, a.UID, a.GID, false) // only root can give it to another owner
			err = e.FS.Chmod(e.ctx, temp, a.Mode)
		}
		return temp, f, err
	}
	return name, nil, vfs.ErrExist
}

func (e *editor) replace(name, temp string) error {
	if e.suffix != "" {
		backup := name + e.suffix
		if strings.Contains(e.suffix, "*") {
			backup = strings.ReplaceAll(e.suffix, "*", path.Base(name))
			if !strings.Contains(backup, "/") {
				backup = path.Join(path.Dir(name), backup)
			}
		}
		if err := e.FS.Rename(e.ctx, name, backup); err != nil {
			return err
		}
	}
	return e.FS.Rename(e.ctx, temp, name)
}
