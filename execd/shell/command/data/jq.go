package data

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var jqOptions = getopt.New("acCef:hjL:MnrRsSV", "ascii-output=a", "compact-output=c", "color-output=C", "exit-status=e",
	"from-file:=f", "join-output=j", "monochrome-output=M", "null-input=n", "raw-output=r", "raw-input=R", "slurp=s",
	"sort-keys=S", "tab", "indent:", "arg:", "argjson:", "slurpfile:", "rawfile:", "args", "jsonargs", "raw-output0", "seq",
	"unbuffered", "stream", "help=h", "version=V")

// filter is what one jq does.
type filter struct {
	*tool.Call
	ctx                                               context.Context
	pulse                                             *pulse
	code                                              *gojq.Code
	values                                            []any // of the variables
	order                                             *order
	printer                                           printer
	nullInput, rawInput, slurp, raw, join, exit, nul0 bool
	unbuffered, stream, seq                           bool
	inputs                                            *inputs
	last                                              any
	some                                              bool
}

// jqArgs is the command line of a jq, of which some options take two values and "--args" changes what operands are.
type jqArgs struct {
	options  []getopt.Option
	operands []string
	named    map[string]any
	order    []string
	args     []any
}

func jq(ctx context.Context, c *tool.Call) error {
	f := &filter{Call: c, ctx: ctx}
	a, err := f.arguments(c.Args[1:])
	if err != nil {
		return err
	}
	program, hasProgram, sorted := "", false, false
	f.printer = printer{w: c.Out, indent: "  "}
	for _, o := range a.options {
		switch o.Name {
		case "f":
			data, err := c.ReadFile(ctx, o.Value)
			if err != nil {
				return c.Die(2, "error: Could not open %s: %s", o.Value, command.Reason(err))
			}
			program, hasProgram = string(data), true
		case "S":
			sorted = true
		default:
			if err := f.set(o); err != nil {
				return err
			}
		}
	}
	if !hasProgram {
		if len(a.operands) == 0 {
			fmt.Fprint(c.Stderr, "Usage:\tjq [OPTIONS] FILTER [FILES...]\n")
			return tool.Exit(2)
		}
		program, a.operands = a.operands[0], a.operands[1:]
	}
	f.order = newOrder(program, sorted)
	f.pulse = newPulse(ctx, c)
	f.order.step = f.pulse.look
	f.printer.order, f.printer.step = f.order, f.pulse.look
	f.inputs = &inputs{filter: f, names: a.operands, stdin: len(a.operands) == 0}
	if err := f.compile(program, a); err != nil {
		return err
	}
	return f.run()
}

func (f *filter) set(o getopt.Option) error {
	switch o.Name {
	case "a":
		f.printer.ascii = true
	case "c":
		f.printer.indent = ""
	case "C":
		f.printer.colors = true
	case "e":
		f.exit = true
	case "j":
		f.raw, f.join = true, true
	case "n":
		f.nullInput = true
	case "r":
		f.raw = true
	case "raw-output0":
		f.raw, f.nul0 = true, true
	case "R":
		f.rawInput = true
	case "s":
		f.slurp = true
	case "tab":
		f.printer.indent = "\t"
	case "unbuffered":
		f.unbuffered = true
	case "indent":
		n, err := strconv.Atoi(o.Value)
		if err != nil || n < 0 || n > 7 {
			return f.Die(2, "Cannot indent more than 7 characters")
		}
		f.printer.indent = strings.Repeat(" ", n)
	case "stream":
		f.stream = true
	case "seq":
		f.seq = true
	case "V":
		_, _ = f.Out.WriteString("jq-1.6\n")
		return tool.Exit(0)
	}
	return nil
}

// arguments reads the command line piece by piece.
func (f *filter) arguments(args []string) (*jqArgs, error) {
	a := &jqArgs{named: map[string]any{}}
	positional := byte(0) // after --args or --jsonargs
	program := false
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch arg {
		case "--arg", "--argjson", "--slurpfile", "--rawfile":
			if i+2 >= len(args) {
				return nil, f.Die(2, "error: %s takes two parameters (e.g. %s varname value)", arg, arg)
			}
			v, err := f.named(arg, args[i+1], args[i+2])
			if err != nil {
				return nil, err
			}
			if _, there := a.named[args[i+1]]; !there {
				a.named[args[i+1]] = v
				a.order = append(a.order, args[i+1])
			}
			i += 2
			continue
		case "--args", "--jsonargs":
			positional = arg[2]
			continue
		case "--":
			a.operands = append(a.operands, args[i+1:]...)
			return a, nil
		}
		if len(arg) < 2 || arg[0] != '-' {
			if positional != 0 && program {
				v, err := f.positional(positional, arg)
				if err != nil {
					return nil, err
				}
				a.args = append(a.args, v)
				continue
			}
			a.operands, program = append(a.operands, arg), true
			continue
		}
		used := []string{arg}
		if takesValue(arg) && i+1 < len(args) {
			i++
			used = append(used, args[i])
		}
		options, _, err := jqOptions.Parse(used)
		if err != nil {
			f.Say("Unknown arguments")
			return nil, tool.Exit(2)
		}
		for _, o := range options {
			program = program || o.Name == "f"
		}
		a.options = append(a.options, options...)
	}
	return a, nil
}

func takesValue(arg string) bool {
	return arg == "--indent" || arg == "--from-file" || arg[1] != '-' && strings.HasSuffix(arg, "f") || arg == "-L"
}

func (f *filter) positional(kind byte, text string) (any, error) {
	if kind == 'a' {
		return text, nil
	}
	v, err := f.parse(text)
	if err != nil {
		return nil, f.Die(2, "Invalid JSON text passed to --jsonargs")
	}
	return v, nil
}

func (f *filter) parse(text string) (any, error) {
	d := newDecoder(strings.NewReader(text), newOrder("", true), func() error { return f.Step(f.ctx, 1) })
	v, err := d.next()
	if err == nil && d.json.More() {
		err = errors.New("more than one value")
	}
	return v, err
}

func (f *filter) named(option, name, text string) (any, error) {
	switch option {
	case "--arg":
		return text, nil
	case "--argjson":
		v, err := f.parse(text)
		if err != nil {
			return nil, f.Die(2, "Invalid JSON text passed to --argjson")
		}
		return v, nil
	}
	data, err := f.ReadFile(f.ctx, text)
	if err != nil {
		return nil, f.Die(2, "error: Could not open file %s: %s", text, command.Reason(err))
	}
	if option == "--rawfile" {
		return string(data), nil
	}
	all := []any{}
	d := newDecoder(strings.NewReader(string(data)), newOrder("", true), func() error { return f.Step(f.ctx, 1) })
	for {
		v, err := d.next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, f.Die(2, "Bad JSON in --slurpfile %s %s: %s", name, text, err)
		}
		all = append(all, v)
	}
}

func (f *filter) compile(program string, a *jqArgs) error {
	query, err := parse(program)
	if err != nil {
		return f.Die(3, "error: %s\njq: 1 compile error", err)
	}
	positional := a.args
	if positional == nil {
		positional = []any{}
	}
	named := map[string]any{}
	for k, v := range a.named {
		named[k] = v
	}
	names := []string{"$ARGS", "$__prog_args"}
	f.values = []any{map[string]any{"positional": positional, "named": named}, nil}
	for _, name := range a.order {
		names, f.values = append(names, "$"+name), append(f.values, a.named[name])
	}
	f.order.learn([]string{"positional", "named"})
	options := append(slices.Concat(f.order.functions(), f.pulse.bounds()), gojq.WithVariables(names), gojq.WithEnvironLoader(func() []string { return f.Env }),
		gojq.WithInputIter(f.inputs), gojq.WithFunction("input_filename", 0, 0, func(any, []any) any {
			if f.inputs.name == "" || f.inputs.name == "-" {
				return nil
			}
			return f.inputs.name
		}))
	f.code, err = gojq.Compile(query, options...)
	if err != nil {
		return f.Die(3, "error: %s\njq: 1 compile error", err)
	}
	return nil
}

// inputs are the values that the program runs on; the function input takes from them too.
type inputs struct {
	*filter
	names   []string
	stdin   bool
	name    string
	open    *tool.Input
	decoder *decoder
	lines   *tool.Lines
	slurped bool
	events  []any // of --stream, that come next
	err     error // what ended them
}

// Next implements gojq.Iter.
func (in *inputs) Next() (any, bool) {
	if in.err != nil {
		return nil, false
	}
	var v any
	var ok bool
	if in.slurp {
		v, ok = in.all()
	} else {
		v, ok = in.one()
	}
	if in.err != nil {
		return in.err, true
	}
	return v, ok
}

func (in *inputs) all() (any, bool) {
	if in.slurped {
		return nil, false
	}
	in.slurped = true
	if in.rawInput {
		var b strings.Builder
		for in.advance() {
			data, err := in.ReadAll(in.open)
			if in.err = err; err != nil {
				return nil, false
			}
			b.Write(data)
			in.close()
		}
		return b.String(), true
	}
	all := []any{}
	for {
		v, ok := in.one()
		if in.err != nil {
			return nil, false
		}
		if !ok {
			return all, true
		}
		all = append(all, v)
	}
}

// advance opens the next file if none is open.
func (in *inputs) advance() bool {
	for in.open == nil {
		switch {
		case in.stdin:
			in.stdin, in.name, in.open = false, "-", in.Standard(in.ctx)
		case len(in.names) == 0:
			return false
		default:
			name := in.names[0]
			in.names = in.names[1:]
			opened, err := in.Open(in.ctx, name)
			if err != nil {
				if in.err = in.unreadable(name, err); in.err != nil {
					return false
				}
				continue
			}
			in.name, in.open = name, opened
		}
		counted := &charged{in.open, in.Call}
		if in.rawInput {
			in.lines = in.Lines(in.open)
		} else {
			in.decoder = newDecoder(counted, in.order, func() error { return in.Step(in.ctx, 1) })
		}
	}
	return true
}

func (f *filter) unreadable(name string, err error) error {
	if tool.Ends(f.ctx, err) {
		return err
	}
	f.Say("error: Could not open file %s: %s", name, command.Reason(err))
	f.Status = 2
	return nil
}

// charged counts the memory that what is read will take.
type charged struct {
	r    io.Reader
	call *tool.Call
}

// Read implements io.Reader.
func (c *charged) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if full := c.call.Take(int64(n) * 4); full != nil {
		return 0, full
	}
	return n, err
}

func (in *inputs) close() {
	_ = in.open.Close()
	in.open, in.decoder, in.lines = nil, nil, nil
}

// one returns the next value, or with --stream the next event of one.
func (in *inputs) one() (any, bool) {
	if !in.stream || in.rawInput {
		return in.whole()
	}
	if len(in.events) == 0 {
		v, ok := in.whole()
		if !ok {
			return nil, false
		}
		in.events = in.order.events(nil, nil, v)
	}
	v := in.events[0]
	in.events = in.events[1:]
	return v, true
}

func (in *inputs) whole() (any, bool) {
	for in.advance() {
		if in.lines != nil {
			if line, ok := in.lines.Next(); ok {
				return string(line), true
			}
			in.err = in.lines.Err()
		} else {
			v, err := in.decoder.next()
			if err == nil {
				return v, true
			}
			if !errors.Is(err, io.EOF) {
				in.err = in.bad(err)
			}
		}
		if in.err != nil {
			return nil, false
		}
		in.close()
	}
	return nil, false
}

// bad is what is wrong with the input.
func (in *inputs) bad(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errNesting) {
		name := in.name
		if name == "-" {
			name = "<stdin>"
		}
		return inputError{fmt.Sprintf("error (at %s:0): %s", name, err)}
	}
	if tool.IsDir(err) {
		return inputError{"error: Could not open " + in.name + ": It's a directory"}
	}
	return err
}

// inputError ends jq with status 2.
type inputError struct{ text string }

func (e inputError) Error() string { return e.text }

func (f *filter) run() error {
	if f.nullInput {
		if err := f.each(nil); err != nil {
			return f.ended(err)
		}
		return f.status()
	}
	for {
		v, ok := f.inputs.Next()
		if err, bad := v.(error); bad {
			return f.ended(err)
		}
		if !ok {
			return f.status()
		}
		if err := f.each(v); err != nil {
			return f.ended(err)
		}
	}
}

// ended turns what ended the program into an exit.
func (f *filter) ended(err error) error {
	var input inputError
	if errors.As(err, &input) {
		return f.Die(2, "%s", input.text)
	}
	return err
}

func (f *filter) status() error {
	if f.exit && f.Status == 0 {
		switch {
		case !f.some:
			f.Status = 4
		case f.last == nil || f.last == false:
			f.Status = 1
		}
	}
	return nil
}

// each runs the program on one value.
func (f *filter) each(v any) error {
	iter := f.code.RunWithContext(f.pulse, v, f.values...)
	for n := 0; ; n++ {
		if err := f.Step(f.ctx, 10); err != nil {
			return err
		}
		out, ok := iter.Next()
		if !ok {
			return nil
		}
		if err, failed := out.(error); failed {
			return f.failed(err)
		}
		if err := f.write(out); err != nil {
			return err
		}
	}
}

// failed says a program's error; the next value follows.
func (f *filter) failed(err error) error {
	var input inputError
	var halt *gojq.HaltError
	switch {
	case f.ctx.Err() != nil, errors.As(err, &input), tool.Ends(f.ctx, err):
		return err
	case errors.As(err, &halt):
		switch v := halt.Value().(type) {
		case nil:
		case string:
			_, _ = io.WriteString(f.Stderr, v)
		default:
			data, _ := gojq.Marshal(v)
			fmt.Fprintf(f.Stderr, "%s\n", data)
		}
		return tool.Exit(halt.ExitCode())
	}
	f.Status = 5
	f.Say("error (at %s): %s", f.where(), err)
	return nil
}

func (f *filter) where() string {
	if f.inputs.name == "" || f.nullInput {
		return "<unknown>"
	}
	if f.inputs.name == "-" {
		return "<stdin>:0"
	}
	return f.inputs.name + ":0"
}

func (f *filter) write(v any) error {
	f.last, f.some = v, true
	if f.seq {
		_ = f.Out.WriteByte(0x1e)
	}
	if s, ok := v.(string); ok && f.raw {
		_, _ = f.Out.WriteString(s)
	} else {
		f.printer.print(v, 0)
	}
	err := f.printer.err
	switch {
	case err != nil:
	case f.nul0:
		err = f.Out.WriteByte(0)
	case !f.join:
		err = f.Out.WriteByte('\n')
	}
	if f.unbuffered {
		return f.Out.Flush()
	}
	return err
}
