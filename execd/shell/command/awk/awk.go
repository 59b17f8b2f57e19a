package awk

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/regex"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// Command is awk.
var Command = tool.Command(awk)

var options = getopt.New("+F:v:f:e:bcCPrStO", "field-separator:=F", "assign:=v", "file:=f", "source:=e", "posix=P",
	"re-interval=r", "sandbox=S", "traditional=c", "characters-as-bytes=b")

// Knows says of arguments which option awk has not.
var Knows = tool.Knows(options)

func awk(ctx context.Context, c *tool.Call) error {
	found, operands, err := c.Options(options, 2)
	if err != nil {
		return err
	}
	var sources, assigned []string
	var fs *string
	for _, o := range found {
		switch o.Name {
		case "F":
			fs = &o.Value
		case "v":
			assigned = append(assigned, o.Value)
		case "e":
			sources = append(sources, o.Value)
		case "f":
			data, err := c.ReadFile(ctx, o.Value)
			if err != nil {
				return c.Die(2, "fatal: cannot open source file `%s' for reading: %s", o.Value, command.Reason(err))
			}
			sources = append(sources, string(data))
		}
	}
	if len(sources) == 0 {
		if len(operands) == 0 {
			return c.Die(2, "usage: awk [-F fs][-v var=value][prog | -f progfile][file ...]")
		}
		sources, operands = operands[:1], operands[1:]
	}
	prog, err := parse(strings.Join(sources, "\n"))
	if err != nil {
		return c.Die(1, "%s", err)
	}
	in, err := newInterp(ctx, c, prog, operands)
	if err != nil {
		return err
	}
	if fs != nil {
		in.vars[varFS] = str(unescapeAll(*fs))
	}
	for _, a := range assigned {
		name, text, ok := strings.Cut(a, "=")
		if !ok || !isName(name) {
			return c.Die(2, "fatal: `%s' argument to `-v' not in `var=value' form", a)
		}
		if err := in.setVariable(name, text); err != nil {
			return c.Die(2, "fatal: %s", err)
		}
	}
	return in.finish(in.run())
}

func unescapeAll(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			i++
			continue
		}
		text, size := unescape(s[i:])
		b.WriteString(text)
		i += size
	}
	return b.String()
}

func newInterp(ctx context.Context, c *tool.Call, prog *program, operands []string) (*interp, error) {
	p := &parser{prog: prog}
	argv, argc, environ := p.variable("ARGV"), p.variable("ARGC"), p.variable("ENVIRON")
	in := &interp{
		Call: c, ctx: ctx, prog: prog, files: map[string]*stream{}, regexes: map[string]*regex.Regexp{},
		rand: rand.New(rand.NewPCG(0, 0)), globals: make([]slot, len(prog.globals), len(prog.globals)+64),
	}
	for i, text := range map[int]string{varFS: " ", varOFS: " ", varORS: "\n", varRS: "\n", varSUBSEP: "\x1c", varCONVFMT: "%.6g",
		varOFMT: "%.6g", varFPAT: "[^[:space:]]+"} {
		in.vars[i] = str(text)
	}
	for _, i := range []int{varNR, varNF, varFNR, varRSTART} {
		in.vars[i] = num(0)
	}
	in.vars[varRLENGTH] = num(-1)
	in.setRecord("")
	in.globals[argc.index].v = num(float64(len(operands) + 1))
	args := newArray()
	in.globals[argv.index].array = args
	for i, arg := range append([]string{"awk"}, operands...) {
		cell, err := in.cellOf(args, strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		cell.v = input(arg)
	}
	env := newArray()
	in.globals[environ.index].array = env
	for _, e := range c.Env {
		name, text, _ := strings.Cut(e, "=")
		cell, err := in.cellOf(env, name)
		if err != nil {
			return nil, err
		}
		cell.v = input(text)
	}
	return in, nil
}

// setVariable does an assignment of the command line.
func (in *interp) setVariable(name, text string) error {
	v := input(unescapeAll(text))
	if i, ok := specials[name]; ok {
		return in.setSpecial(i, v)
	}
	there := in.prog.globals[name]
	if there == nil {
		return nil // the program does not use it
	}
	in.globals[there.index].v = v
	return nil
}

// run runs BEGIN, the rules on every record, and END.
func (in *interp) run() error {
	err := in.blocks(in.prog.begin)
	if err == nil && (len(in.prog.rules) > 0 || len(in.prog.end) > 0) {
		err = in.records()
	}
	if err == nil || errors.Is(err, errExit) {
		if endErr := in.blocks(in.prog.end); err == nil || !errors.Is(endErr, errExit) && endErr != nil {
			err = endErr
		}
	}
	return err
}

func (in *interp) blocks(blocks [][]stmt) error {
	for _, body := range blocks {
		if _, err := in.statements(body); err != nil {
			return err
		}
	}
	return nil
}

func (in *interp) records() error {
	for {
		text, ok, err := in.nextRecord()
		if err != nil || !ok {
			return err
		}
		if err := in.tick(); err != nil {
			return err
		}
		in.setRecord(text)
		f, err := in.rules()
		if err != nil {
			return err
		}
		if f == flowNextFile {
			in.skipFile()
		}
	}
}

func (in *interp) rules() (flow, error) {
	for _, r := range in.prog.rules {
		ok, err := in.selects(r)
		if err != nil {
			return flowNone, err
		}
		if !ok {
			continue
		}
		if r.print {
			if err := in.print(printStmt{}); err != nil {
				return flowNone, err
			}
			continue
		}
		f, err := in.statements(r.body)
		if err != nil || f == flowNext || f == flowNextFile {
			return f, err
		}
	}
	return flowNone, nil
}

// selects says whether a rule is for the present record.
func (in *interp) selects(r *rule) (bool, error) {
	switch {
	case r.from == nil:
		return true, nil
	case r.to == nil:
		return in.truth(r.from)
	}
	if !r.active {
		ok, err := in.truth(r.from)
		if err != nil || !ok {
			return false, err
		}
		r.active = true
	}
	ends, err := in.truth(r.to)
	r.active = !ends
	return true, err
}

// finish closes what is open and says what went wrong.
func (in *interp) finish(err error) error {
	in.skipFile()
	var run runError
	switch {
	case errors.As(err, &run):
		_ = in.closeAll()
		return in.Die(2, "fatal: %s", run.text)
	case err != nil && !errors.Is(err, errExit):
		return err
	}
	if err := in.flush(); err != nil {
		return err
	}
	if err := in.closeAll(); err != nil {
		return err
	}
	in.Status = in.status
	return nil
}
