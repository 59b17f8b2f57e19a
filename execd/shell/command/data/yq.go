package data

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var yqOptions = getopt.New("CeiI:jMno:p:PrsyYN", "colors=C", "no-colors=M", "exit-status=e", "inplace=i", "in-place=i", "indent:=I",
	"tojson=j", "null-input=n", "output-format:=o", "input-format:=p", "prettyPrint=P", "raw-output=r", "unwrapScalar::=r",
	"slurp=s", "yaml-output=y", "yml-output=y", "no-doc=N")

// yamlFilter is what one yq does: a program of jq's language on YAML documents.
type yamlFilter struct {
	*tool.Call
	ctx                              context.Context
	pulse                            *pulse
	code                             *gojq.Code
	order                            *order
	json, jsonInput, inPlace, null   bool
	exit, slurp, compact, separators bool
	indent                           int
	some                             bool // a document has been printed
	last                             any
}

func yq(ctx context.Context, c *tool.Call) error {
	options, operands, err := c.Options(yqOptions, 1)
	if err != nil {
		return err
	}
	y := &yamlFilter{Call: c, ctx: ctx, indent: 2, separators: true}
	for _, o := range options {
		if err := y.set(o); err != nil {
			return err
		}
	}
	if len(operands) > 0 {
		switch operands[0] {
		case "eval", "e", "eval-all", "ea":
			operands = operands[1:]
		}
	}
	program := "."
	if len(operands) > 0 {
		if _, err := c.FS.Stat(ctx, operands[0]); len(operands) > 1 || err != nil || operands[0] == "." || y.null {
			program, operands = operands[0], operands[1:]
		}
	}
	if program == "" {
		program = "."
	}
	query, err := parse(program)
	if err != nil {
		return c.Die(1, "Error: %s", err)
	}
	y.order = newOrder(program, false)
	y.pulse = newPulse(ctx, c)
	y.order.step = y.pulse.look
	settings := append(slices.Concat(y.order.functions(), y.pulse.bounds()), gojq.WithEnvironLoader(func() []string { return c.Env }))
	y.code, err = gojq.Compile(query, settings...)
	if err != nil {
		return c.Die(1, "Error: %s", err)
	}
	return y.files(operands)
}

func (y *yamlFilter) set(o getopt.Option) error {
	switch o.Name {
	case "j":
		y.json = true
	case "o", "p":
		json := strings.HasPrefix(o.Value, "j")
		if !json && !strings.HasPrefix(o.Value, "y") && o.Value != "a" && o.Value != "auto" {
			return y.Die(1, "Error: unknown format '%s'", o.Value)
		}
		if o.Name == "o" {
			y.json = json
		} else {
			y.jsonInput = json
		}
	case "y", "Y":
		y.json = false
	case "i":
		y.inPlace = true
	case "n":
		y.null = true
	case "e":
		y.exit = true
	case "s":
		y.slurp = true
	case "N":
		y.separators = false
	case "I":
		n, err := strconv.Atoi(o.Value)
		if err != nil || n < 0 || n > 16 {
			return y.Die(1, "Error: invalid indent '%s'", o.Value)
		}
		y.indent, y.compact = max(n, 2), n == 0
	}
	return nil
}

func (y *yamlFilter) files(names []string) error {
	if y.null {
		return y.finish(y.each(nil))
	}
	if len(names) == 0 {
		names = []string{"-"}
	}
	for _, name := range names {
		out := y.Out
		var edited bytes.Buffer
		if y.inPlace {
			inner := *y.Call
			y.Call = &inner
			inner.Out = bufWriter(&edited)
		}
		err := y.file(name)
		if y.inPlace {
			err = errors.Join(err, y.Out.Flush())
			y.Out = out
			if err == nil {
				err = y.FS.WriteFile(y.ctx, name, edited.Bytes(), 0o666)
			}
			y.some = false
		}
		if err != nil {
			return y.finish(err)
		}
	}
	return y.finish(nil)
}

func (y *yamlFilter) file(name string) error {
	in, err := y.Open(y.ctx, name)
	if err != nil {
		return y.Die(1, "Error: open %s: %s", name, strings.ToLower(command.Reason(err)))
	}
	defer in.Close()
	next := newYAMLReader(&charged{in, y.Call}, y.order).next
	if y.jsonInput || strings.HasSuffix(name, ".json") {
		next = newDecoder(&charged{in, y.Call}, y.order, func() error { return y.Step(y.ctx, 1) }).next
		y.json = y.json || strings.HasSuffix(name, ".json")
	}
	var all []any
	for {
		v, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if tool.Ends(y.ctx, err) {
				return err
			}
			return y.Die(1, "Error: bad file '%s': %s", name, err)
		}
		if y.slurp {
			all = append(all, v)
			continue
		}
		if err := y.each(v); err != nil {
			return err
		}
	}
	if y.slurp {
		return y.each(all)
	}
	return nil
}

func (y *yamlFilter) each(v any) error {
	iter := y.code.RunWithContext(y.pulse, v)
	for {
		if err := y.Step(y.ctx, 10); err != nil {
			return err
		}
		out, ok := iter.Next()
		if !ok {
			return nil
		}
		if err, failed := out.(error); failed {
			if tool.Ends(y.ctx, err) {
				return err
			}
			return y.Die(1, "Error: %s", err)
		}
		if err := y.write(out); err != nil {
			return err
		}
	}
}

func (y *yamlFilter) write(v any) error {
	y.last = v
	if y.json {
		p := printer{w: y.Out, order: y.order, step: y.order.step, indent: strings.Repeat(" ", y.indent)}
		if y.compact {
			p.indent = ""
		}
		if p.print(v, 0); p.err != nil {
			return p.err
		}
		y.some = true
		return y.Out.WriteByte('\n')
	}
	if s, ok := v.(string); ok {
		y.some = true
		_, err := y.Out.WriteString(s + "\n")
		return err
	}
	text, err := yamlText(v, y.order, y.indent)
	if err != nil {
		return err
	}
	_, isObject := v.(map[string]any)
	if y.some && y.separators && isObject {
		text = "---\n" + text
	}
	y.some = true
	_, err = y.Out.WriteString(text)
	return err
}

func (y *yamlFilter) finish(err error) error {
	if err == nil && y.exit && (y.last == nil || y.last == false) {
		return y.Die(1, "Error: no matches found")
	}
	return err
}
