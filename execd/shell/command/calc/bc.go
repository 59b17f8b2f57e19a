package calc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var bcOptions = getopt.New("hilqsvwe:", "help=h", "interactive=i", "mathlib=l", "quiet=q", "standard=s", "warn=w",
	"version=v", "expression:=e")

// bcFunction is one that a program has defined.
type bcFunction struct {
	params, autos []string // arrays end in "["
	body          exec
	void          bool
}

// bcMachine is one bc.
type bcMachine struct {
	*tool.Call
	ctx                 context.Context
	vars                map[string]number
	arrays              map[string]map[string]number
	functions           map[string]*bcFunction
	scale, ibase, obase int
	last, result        number
	width               int
	depth               int
}

// mathLibrary are the functions of bc -l: series, with some digits more than asked for.
const mathLibrary = `
define e(x) {
  auto a, b, d, e, i, m, n, v, z
  if (x<0) { m = 1; x = -x }
  z = scale
  n = 6 + z + .44*x
  scale = scale(x) + 1
  while (x > 1) { d += 1; x /= 2; scale += 1 }
  scale = n
  v = 1+x; a = x; b = 1
  for (i = 2; 1; i++) {
    e = (a *= x) / (b *= i)
    if (e == 0) {
      if (d > 0) while (d--) v = v*v
      scale = z
      if (m) return (1/v)
      return (v/1)
    }
    v += e
  }
}
define l(x) {
  auto e, f, i, m, n, v, z
  if (x <= 0) return ((1 - 10^scale)/1)
  z = scale
  scale = 6 + scale
  f = 2; i = 0
  while (x >= 2) { f *= 2; x = sqrt(x) }
  while (x <= .5) { f *= 2; x = sqrt(x) }
  v = n = (x-1)/(x+1)
  m = n*n
  for (i = 3; 1; i += 2) {
    e = (n *= m) / i
    if (e == 0) { v = f*v; scale = z; return (v/1) }
    v += e
  }
}
define s(x) {
  auto e, i, m, n, s, v, z
  z = scale
  scale = 1.1*z + 2
  v = a(1)
  if (x < 0) { m = 1; x = -x }
  scale = 0
  n = (x / v + 2) / 4
  x = x - 4*n*v
  if (n%2) x = -x
  scale = z + 2
  v = e = x
  s = -x*x
  for (i = 3; 1; i += 2) {
    e *= s/(i*(i-1))
    if (e == 0) { scale = z; if (m) return (-v/1); return (v/1) }
    v += e
  }
}
define c(x) {
  auto v, z
  z = scale
  scale = scale*1.2
  v = s(x+a(1)*2)
  scale = z
  return (v/1)
}
define a(x) {
  auto a, e, f, i, m, n, s, v, z
  m = 1
  if (x<0) { m = -1; x = -x }
  if (x==1 && scale <= 25) return (.7853981633974483096156608/m)
  if (x==.2 && scale <= 25) return (.1973955598498807583700497/m)
  z = scale
  scale = z+5
  a = 0
  if (x > .2) a = a(.2)
  while (x > .2) { f += 1; x = (x-.2) / (1+x*.2) }
  v = n = x
  s = -x*x
  for (i = 3; 1; i += 2) {
    e = (n *= s) / i
    if (e == 0) { scale = z; return ((f*a+v)/m) }
    v += e
  }
}
`

func bc(ctx context.Context, c *tool.Call) error {
	options, names, err := c.Options(bcOptions, 1)
	if err != nil {
		return err
	}
	m := &bcMachine{Call: c, ctx: ctx, vars: map[string]number{}, arrays: map[string]map[string]number{},
		functions: map[string]*bcFunction{}, ibase: 10, obase: 10, last: zero, width: 70}
	if w, ok := c.Getenv("BC_LINE_LENGTH"); ok {
		if n, err := strconv.Atoi(w); err == nil {
			m.width = n
		}
	}
	for _, o := range options {
		switch o.Name {
		case "l":
			if _, err := m.program(mathLibrary); err != nil {
				return err
			}
			m.scale = 20
		case "e":
			if quit, err := m.program(o.Value + "\n"); err != nil || quit {
				return err
			}
		}
	}
	for _, name := range names {
		data, err := c.ReadFile(ctx, name)
		if err != nil {
			return c.Die(1, "File %s is unavailable.", name)
		}
		if quit, err := m.program(string(data)); err != nil || quit {
			return err
		}
	}
	data, err := c.ReadAll(c.Standard(ctx))
	if err != nil {
		return err
	}
	_, err = m.program(string(data))
	return err
}

// program runs statements line by line: what is wrong with one is said, and the next line follows.
func (m *bcMachine) program(src string) (quit bool, err error) {
	tokens, err := lexBC(src)
	if err != nil {
		m.complain(1, err)
		return false, nil
	}
	p := &bcParser{tokens: tokens, m: m}
	for {
		for p.peek().kind == '\n' || p.is(";") {
			p.pos++
		}
		if p.peek().kind == 0 {
			return false, nil
		}
		s, err := p.statement()
		if t := p.peek(); err == nil && t.kind != '\n' && t.kind != 0 && !p.is(";") {
			err = errSyntax
		}
		if err == nil {
			var f bcFlow
			f, err = s(m)
			if f == bcQuit {
				return true, nil
			}
		}
		if err != nil {
			if tool.Ends(m.ctx, err) {
				return false, err
			}
			m.complain(1+lines(p.tokens[:min(p.pos+1, len(p.tokens))]), err)
			for p.peek().kind != '\n' && p.peek().kind != 0 {
				p.pos++
			}
			p.depth = 0
		}
	}
}

func lines(tokens []token) (n int) {
	for _, t := range tokens {
		if t.kind == '\n' {
			n++
		}
	}
	return n
}

func (m *bcMachine) complain(line int, err error) {
	switch {
	case errors.Is(err, errSyntax):
		fmt.Fprintf(m.Stderr, "(standard_in) %d: %s\n", line, err)
	case errors.Is(err, errDivide):
		fmt.Fprintf(m.Stderr, "Runtime error (func=(main), adr=3): Divide by zero\n")
	case errors.Is(err, errModulo):
		fmt.Fprintf(m.Stderr, "Runtime error (func=(main), adr=3): Modulo by zero\n")
	case errors.Is(err, errRoot):
		fmt.Fprintf(m.Stderr, "Runtime error (func=(main), adr=4): Square root of a negative number\n")
	default:
		fmt.Fprintf(m.Stderr, "Runtime error (func=(main), adr=3): %s\n", err)
	}
}

// text writes a text, without breaking lines.
func (m *bcMachine) text(s string) error {
	_, err := m.Out.WriteString(s)
	return err
}

// show prints the value of a statement, broken at the width as bc does.
func (m *bcMachine) show(v number) error {
	m.last = v
	text := strings.TrimPrefix(v.format(m.obase), " ")
	for m.width > 1 && len(text) >= m.width {
		_, _ = m.Out.WriteString(text[:m.width-2] + "\\\n")
		text = text[m.width-2:]
	}
	_, err := m.Out.WriteString(text + "\n")
	return err
}

func (m *bcMachine) get(name string) number {
	if v, ok := m.vars[name]; ok {
		return v
	}
	return zero
}

func (m *bcMachine) array(name string) map[string]number {
	a := m.arrays[name]
	if a == nil {
		a = map[string]number{}
		m.arrays[name] = a
	}
	return a
}

// call runs a function: its parameters and autos are put in the place of what has their names, as in bc.
func (m *bcMachine) call(name string, args []eval, arrays []string) (number, error) {
	f := m.functions[name]
	if f == nil {
		return zero, fmt.Errorf("function %s not defined", name)
	}
	if len(args) != len(f.params) {
		return zero, errors.New("parameter number mismatch")
	}
	if m.depth++; m.depth > 2_000 {
		return zero, errors.New("recursion too deep")
	}
	defer func() { m.depth-- }()
	if err := m.Step(m.ctx, 2); err != nil {
		return zero, err
	}
	values := make([]number, len(args))
	copies := make([]map[string]number, len(args))
	for i, arg := range args {
		if arg == nil {
			copies[i] = maps.Clone(m.array(arrays[i]))
			continue
		}
		v, err := arg(m)
		if err != nil {
			return zero, err
		}
		values[i] = v
	}
	vars, saved := map[string]number{}, map[string]map[string]number{}
	for _, n := range append(append([]string(nil), f.params...), f.autos...) {
		if a, isArray := strings.CutSuffix(n, "["); isArray {
			saved[a] = m.arrays[a]
			m.arrays[a] = map[string]number{}
		} else {
			vars[n] = m.get(n)
			m.vars[n] = zero
		}
	}
	for i, n := range f.params {
		if a, isArray := strings.CutSuffix(n, "["); isArray {
			m.arrays[a] = copies[i]
		} else {
			m.vars[n] = values[i]
		}
	}
	m.result = zero
	_, err := f.body(m)
	maps.Copy(m.vars, vars)
	maps.Copy(m.arrays, saved)
	return m.result, err
}

func unescapeBC(s string) string {
	return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`, `\q`, `"`, `\a`, "\a", `\b`, "\b", `\f`, "\f", `\r`, "\r").Replace(s)
}
