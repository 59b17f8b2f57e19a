package calc

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var dcOptions = getopt.New("e:f:V", "expression:=e", "file:=f")

// cell is what a dc register or the stack holds: a number or a text.
type cell struct {
	n      number
	text   string
	isText bool
}

// small is a number that is neither negative nor large, else -1.
func (c cell) small() int {
	if c.isText {
		return -1
	}
	if n := c.n.to(0); n.IsInt64() && n.Int64() >= 0 && n.Int64() <= 1<<30 {
		return int(n.Int64())
	}
	return -1
}

// stackMachine is one dc.
type stackMachine struct {
	*tool.Call
	ctx       context.Context
	stack     []cell
	registers [256][]cell
	arrays    [256]map[string]cell
	scale     int
	in, out   int
	depth     int
	quit      int // levels of macros still to leave; negative for all
}

func dc(ctx context.Context, c *tool.Call) error {
	options, names, err := c.Options(dcOptions, 1)
	if err != nil {
		return err
	}
	d := &stackMachine{Call: c, ctx: ctx, in: 10, out: 10}
	ran := false
	run := func(text string) error {
		ran = true
		return d.run(text)
	}
	for _, o := range options {
		text := o.Value
		if o.Name == "f" {
			data, err := c.ReadFile(ctx, o.Value)
			if err != nil {
				return c.Die(1, "Could not open file %s", o.Value)
			}
			text = string(data)
		}
		if err := run(text); err != nil || d.quit != 0 {
			return err
		}
	}
	for _, name := range names {
		data, err := c.ReadFile(ctx, name)
		if err != nil {
			return c.Die(1, "%s: %s", name, command.Reason(err))
		}
		if err := run(string(data)); err != nil || d.quit != 0 {
			return err
		}
	}
	if ran {
		return nil
	}
	lines := c.Lines(c.Standard(ctx))
	for line, ok := lines.Next(); ok; line, ok = lines.Next() {
		text := string(line)
		for strings.Count(text, "[") > strings.Count(text, "]") {
			more, ok := lines.Next()
			if !ok {
				break
			}
			text += "\n" + string(more)
		}
		if err := d.run(text); err != nil || d.quit != 0 {
			return err
		}
	}
	return lines.Err()
}

func (d *stackMachine) complain(format string, args ...any) { d.Say(format, args...) }

func (d *stackMachine) pop() (cell, bool) {
	if len(d.stack) == 0 {
		d.complain("stack empty")
		return cell{}, false
	}
	c := d.stack[len(d.stack)-1]
	d.stack = d.stack[:len(d.stack)-1]
	return c, true
}

func (d *stackMachine) push(n number) error {
	d.stack = append(d.stack, cell{n: n})
	if len(d.stack) > 1<<20 {
		return command.ErrMemory
	}
	return nil
}

func (c cell) show(base int) string {
	if c.isText {
		return c.text
	}
	return c.n.format(base)
}

// run runs a program.
func (d *stackMachine) run(text string) error {
	if d.depth++; d.depth > 10_000 {
		d.complain("recursion too deep")
		d.depth--
		return nil
	}
	defer func() { d.depth-- }()
	for i := 0; i < len(text); {
		if err := d.Step(d.ctx, 1); err != nil {
			return err
		}
		used, tail, err := d.command(text[i:])
		if err != nil {
			return err
		}
		if d.quit != 0 {
			if d.quit > 0 {
				d.quit--
			}
			return nil
		}
		i += used
		if tail != nil {
			// A macro at the end of another takes its place: loops of macros do not nest.
			if strings.TrimSpace(text[i:]) == "" {
				text, i = *tail, 0
				continue
			}
			if err := d.run(*tail); err != nil || d.quit != 0 {
				return err
			}
		}
	}
	return nil
}

// command runs the first command of text: how long it is, and a macro that is to run next.
func (d *stackMachine) command(text string) (used int, macro *string, err error) {
	c := text[0]
	register := func() (byte, bool) {
		if len(text) < 2 {
			return 0, false
		}
		return text[1], true
	}
	switch {
	case c >= '0' && c <= '9', c >= 'A' && c <= 'F', c == '.', c == '_':
		n := 1
		for n < len(text) && (text[n] >= '0' && text[n] <= '9' || text[n] >= 'A' && text[n] <= 'F' || text[n] == '.') {
			n++
		}
		v, err := parse(strings.TrimPrefix(text[:n], "_"), d.in)
		if err != nil {
			return n, nil, err
		}
		if c == '_' {
			v = v.neg()
		}
		return n, nil, d.push(v)
	case strings.IndexByte(" \t\n\r", c) >= 0:
		return 1, nil, nil
	case c == '#':
		end := strings.IndexByte(text, '\n')
		if end < 0 {
			return len(text), nil, nil
		}
		return end, nil, nil
	case c == '[':
		depth, n := 1, 1
		for ; n < len(text) && depth > 0; n++ {
			switch text[n] {
			case '[':
				depth++
			case ']':
				depth--
			}
		}
		end := n
		if depth == 0 {
			end--
		}
		d.stack = append(d.stack, cell{text: text[1:end], isText: true})
		return n, nil, d.Take(int64(end))
	case strings.IndexByte("slSL:;", c) >= 0:
		if r, ok := register(); ok {
			return 2, nil, d.register(c, r)
		}
		return 1, nil, nil
	case strings.IndexByte("<>=!", c) >= 0:
		return d.conditional(text)
	case c == 'x':
		v, ok := d.pop()
		if ok && v.isText {
			return 1, &v.text, nil
		}
		if ok {
			d.stack = append(d.stack, v)
		}
		return 1, nil, nil
	case c == '?':
		line, _ := d.Lines(d.Standard(d.ctx)).Next()
		s := string(line)
		return 1, &s, nil
	}
	return 1, nil, d.simple(c)
}

func (d *stackMachine) conditional(text string) (int, *string, error) {
	op, n := text[:1], 1
	if op == "!" {
		if len(text) < 2 || strings.IndexByte("<>=", text[1]) < 0 {
			return 1, nil, nil // running programs is not for us
		}
		op, n = text[:2], 2
	}
	if len(text) <= n {
		return n, nil, nil
	}
	r := text[n]
	order := 0 // of what cannot be compared, too
	if a, b, ok := d.operands(); ok {
		d.stack = d.stack[:len(d.stack)-2]
		order = compare(a.n, b.n)
	}
	holds := map[byte]bool{'<': order < 0, '>': order > 0, '=': order == 0}[op[len(op)-1]]
	if holds == (len(op) == 2) {
		return n + 1, nil, nil
	}
	if len(d.registers[r]) == 0 {
		return n + 1, nil, d.push(zero)
	}
	v := d.registers[r][len(d.registers[r])-1]
	if !v.isText {
		return n + 1, nil, d.push(v.n)
	}
	return n + 1, &v.text, nil
}

func (d *stackMachine) register(c, r byte) error {
	stack := &d.registers[r]
	switch c {
	case 's', 'S':
		v, ok := d.pop()
		if !ok {
			return nil
		}
		if c == 'S' || len(*stack) == 0 {
			*stack = append(*stack, v)
		} else {
			(*stack)[len(*stack)-1] = v
		}
	case 'l', 'L':
		if len(*stack) == 0 {
			if c == 'l' {
				return d.push(zero)
			}
			d.complain("stack register '%c' (0%o) is empty", r, r)
			return nil
		}
		d.stack = append(d.stack, (*stack)[len(*stack)-1])
		if c == 'L' {
			*stack = (*stack)[:len(*stack)-1]
		}
	case ':':
		i, ok := d.pop()
		if !ok {
			return nil
		}
		v, ok := d.pop()
		if !ok {
			return nil
		}
		at, ok := d.index(i)
		if !ok {
			return nil
		}
		if d.arrays[r] == nil {
			d.arrays[r] = map[string]cell{}
		}
		d.arrays[r][at] = v
		return d.Take(64)
	case ';':
		i, ok := d.pop()
		if !ok {
			return nil
		}
		at, ok := d.index(i)
		if !ok {
			return nil
		}
		v, there := d.arrays[r][at]
		if !there {
			v = cell{n: zero}
		}
		d.stack = append(d.stack, v)
	}
	return nil
}

// index is where in an array a cell leads.
func (d *stackMachine) index(c cell) (at string, ok bool) {
	if c.isText || compare(c.n, zero) < 0 {
		d.complain("array index must be a nonnegative integer")
		return "", false
	}
	return c.n.to(0).String(), true
}

func (d *stackMachine) simple(c byte) error {
	switch c {
	case '+', '-', '*', '/', '%', '^', '~':
		return d.binary(c)
	case 'v':
		if v, ok := d.pop(); ok {
			if v.isText {
				d.complain("square root of nonnumeric attempted")
				return nil
			}
			n, err := sqrt(v.n, d.scale)
			return d.result(n, err)
		}
	case 'p', 'n', 'P':
		return d.print(c)
	case 'f':
		for i := len(d.stack) - 1; i >= 0; i-- {
			fmt.Fprintln(d.Out, d.stack[i].show(d.out))
		}
	case 'd':
		if v, ok := d.pop(); ok {
			d.stack = append(d.stack, v, v)
		}
	case 'r':
		if n := len(d.stack); n >= 2 {
			d.stack[n-1], d.stack[n-2] = d.stack[n-2], d.stack[n-1]
		}
	case 'R':
		d.rotate()
	case 'c':
		d.stack = d.stack[:0]
	case 'z':
		return d.push(integer(int64(len(d.stack))))
	case 'k', 'i', 'o':
		return d.setting(c)
	case 'K':
		return d.push(integer(int64(d.scale)))
	case 'I':
		return d.push(integer(int64(d.in)))
	case 'O':
		return d.push(integer(int64(d.out)))
	case 'q':
		d.quit = 2
	case 'Q':
		if v, ok := d.pop(); ok {
			if d.quit = v.small(); d.quit < 1 {
				d.quit = 0
				d.complain("Q command requires a number >= 1")
			}
		}
	case 'Z', 'X':
		return d.measure(c)
	case 'a':
		if v, ok := d.pop(); ok {
			if !v.isText {
				v.text = string([]byte{byte(v.n.to(0).Int64())})
			}
			d.stack = append(d.stack, cell{text: v.text[:min(1, len(v.text))], isText: true})
		}
	case '|':
		return d.modularPower()
	default:
		d.complain("'%c' (0%o) unimplemented", c, c)
	}
	return nil
}

func (d *stackMachine) print(c byte) error {
	if c == 'p' {
		if len(d.stack) == 0 {
			d.complain("stack empty")
			return nil
		}
		_, err := fmt.Fprintln(d.Out, d.stack[len(d.stack)-1].show(d.out))
		return err
	}
	v, ok := d.pop()
	if !ok {
		return nil
	}
	text := v.show(d.out)
	if c == 'P' && !v.isText {
		if text = string(new(big.Int).Abs(v.n.to(0)).Bytes()); text == "" {
			text = "\x00"
		}
	}
	_, err := d.Out.WriteString(text)
	return err
}

// rotate takes how many are to be rotated at the top of the stack: the lowest of them comes to the top, or with less than zero the
// top below the others.
func (d *stackMachine) rotate() {
	v, ok := d.pop()
	if !ok || v.isText {
		return
	}
	back := v.n.sign() < 0
	if back {
		v.n = v.n.neg()
	}
	n := v.small()
	if n < 0 || n > len(d.stack) {
		n = len(d.stack)
	}
	top := d.stack[len(d.stack)-n:]
	switch {
	case n < 2:
	case back:
		copy(top, append([]cell{top[n-1]}, top[:n-1]...))
	default:
		copy(top, append(slices.Clone(top[1:]), top[0]))
	}
}

func (d *stackMachine) setting(c byte) error {
	v, ok := d.pop()
	if !ok {
		return nil
	}
	value := v.small()
	switch {
	case c == 'k' && value >= 0:
		d.scale = min(value, maxScale)
	case c == 'i' && value >= 2 && value <= 16:
		d.in = value
	case c == 'o' && value >= 2:
		d.out = value
	default:
		d.complain("%s", map[byte]string{'k': "scale must be a nonnegative number",
			'i': "input base must be a number between 2 and 16 (inclusive)", 'o': "output base must be a number greater than 1"}[c])
	}
	return nil
}

func (d *stackMachine) measure(c byte) error {
	v, ok := d.pop()
	if !ok {
		return nil
	}
	n := v.n.scale
	if c == 'Z' {
		if n = len(v.text); !v.isText {
			n = max(len(new(big.Int).Abs(v.n.n).String()), v.n.scale)
		}
	}
	return d.push(integer(int64(n)))
}

// operands are the two numbers on the top of the stack, where they stay.
func (d *stackMachine) operands() (top, next cell, ok bool) {
	if len(d.stack) < 2 {
		d.complain("stack empty")
		return top, next, false
	}
	top, next = d.stack[len(d.stack)-1], d.stack[len(d.stack)-2]
	if top.isText || next.isText {
		d.complain("non-numeric value")
		return top, next, false
	}
	return top, next, true
}

func (d *stackMachine) binary(c byte) error {
	b, a, ok := d.operands()
	if !ok {
		return nil
	}
	d.stack = d.stack[:len(d.stack)-2]
	var n number
	var err error
	switch c {
	case '+':
		n = add(a.n, b.n)
	case '-':
		n = add(a.n, b.n.neg())
	case '*':
		n, err = mul(a.n, b.n, d.scale)
	case '/':
		n, err = div(a.n, b.n, d.scale)
	case '%':
		n, err = mod(a.n, b.n, d.scale)
	case '^':
		n, err = power(a.n, b.n, d.scale)
	case '~':
		q, divErr := div(a.n, b.n, d.scale)
		if divErr == nil {
			_ = d.push(q)
		}
		if n, err = mod(a.n, b.n, d.scale); divErr != nil {
			err = divErr
		}
	}
	if err != nil {
		d.stack = append(d.stack, a, b)
	}
	return d.result(n, err)
}

// modularPower is "|": an operation that fails leaves its operands.
func (d *stackMachine) modularPower() error {
	if len(d.stack) < 3 {
		d.complain("stack empty")
		return nil
	}
	operands := d.stack[len(d.stack)-3:]
	b, e, m := operands[0], operands[1], operands[2]
	switch {
	case b.isText || e.isText || m.isText:
		d.complain("non-numeric value")
		return nil
	case m.n.to(0).Sign() == 0:
		d.complain("remainder by zero")
		return nil
	case e.n.sign() < 0:
		d.complain("exponent is negative") // dc's own result is not a power
		return nil
	}
	d.stack = d.stack[:len(d.stack)-3]
	return d.push(number{new(big.Int).Exp(b.n.to(0), e.n.to(0), new(big.Int).Abs(m.n.to(0))), 0})
}

func (d *stackMachine) result(n number, err error) error {
	switch {
	case errors.Is(err, errModulo):
		d.complain("remainder by zero")
		return nil
	case errors.Is(err, errRoot):
		d.complain("square root of negative number")
		return nil
	case err != nil:
		d.complain("%s", err)
		return nil
	}
	return d.push(n)
}
