package shell

import (
	"fmt"
	"slices"
	"strings"
)

func (sh *shell) builtinSet(args []string) int {
	args = args[1:]
	if len(args) == 0 {
		return sh.listVariables()
	}
	for len(args) > 0 {
		a := args[0]
		if a == "--" {
			sh.args = slices.Clone(args[1:])
			return 0
		}
		if a == "-" {
			sh.setOption(optXtrace, false)
			sh.setOption(optVerbose, false)
			if len(args) > 1 {
				sh.args = slices.Clone(args[1:])
			}
			return 0
		}
		if len(a) < 2 || a[0] != '-' && a[0] != '+' {
			break
		}
		args = args[1:]
		for _, c := range a[1:] {
			if c == 'o' {
				if len(args) == 0 {
					return sh.listOptions(a[0] == '-')
				}
				if !sh.setByName(args[0], a[0] == '-') {
					sh.warnf("set: %s: invalid option name", args[0])
					return 2
				}
				args = args[1:]
				continue
			}
			name, ok := optionOfLetter(byte(c))
			if !ok {
				sh.warnf("set: %c%c: invalid option", a[0], c)
				sh.usage("set")
				return 2
			}
			sh.setByName(name, a[0] == '-')
		}
	}
	if len(args) > 0 {
		sh.args = slices.Clone(args)
	}
	return 0
}

func (sh *shell) setOption(opt int, on bool) {
	sh.opts.switchSet(opt, on)
	sh.syncOptionVariables()
}

func (sh *shell) setByName(name string, on bool) bool {
	i := slices.Index(setNames, name)
	if i < 0 {
		return false
	}
	switch {
	case i == optVi && on:
		sh.opts.switchSet(optEmacs, false)
	case i == optEmacs && on:
		sh.opts.switchSet(optVi, false)
	case i == optPosix && on:
		sh.opts.switchShopt(optInheritErrexit, true)
	}
	sh.setOption(i, on)
	return true
}

func (sh *shell) listOptions(readable bool) int {
	var b strings.Builder
	for i, name := range setNames {
		state := onOff(sh.on(i))
		if readable {
			fmt.Fprintf(&b, "%-15s\t%s\n", name, state)
		} else if sh.on(i) {
			b.WriteString("set -o " + name + "\n")
		} else {
			b.WriteString("set +o " + name + "\n")
		}
	}
	return sh.print(b.String())
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// listVariables is set without arguments.
func (sh *shell) listVariables() int {
	var b strings.Builder
	sh.vars.Scan(func(name string, v *variable) bool {
		if v.special != nil {
			v = sh.lookup(name)
		}
		b.WriteString(plainAssignment(name, v))
		return true
	})
	if !sh.on(optPosix) {
		sh.funcs.Scan(func(_ string, f *function) bool {
			b.WriteString(printFunction(f))
			return true
		})
	}
	return sh.print(b.String())
}

// shoptCall is one call of shopt.
type shoptCall struct {
	sh                              *shell
	set, unset, quiet, print, posix bool
	names                           []string
	on                              func(int) bool
}

func (sh *shell) builtinShopt(args []string) int {
	c := &shoptCall{sh: sh, names: shoptNames, on: sh.shopt}
	args = args[1:]
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for _, l := range a[1:] {
			if !c.option(l) {
				return sh.badOption("shopt", "-"+string(l))
			}
		}
	}
	switch {
	case c.set && c.unset:
		sh.warnf("shopt: cannot set and unset shell options simultaneously")
		return 1
	case len(args) == 0:
		return c.list()
	}
	status := 0
	for _, a := range args {
		status |= c.one(a)
	}
	return status
}

func (c *shoptCall) option(l rune) bool {
	switch l {
	case 's':
		c.set = true
	case 'u':
		c.unset = true
	case 'q':
		c.quiet = true
	case 'p':
		c.print = true
	case 'o':
		c.posix, c.names, c.on = true, setNames, c.sh.on
	default:
		return false
	}
	return true
}

func (c *shoptCall) list() int {
	if c.quiet {
		return 0
	}
	var b strings.Builder
	for i, name := range c.names {
		if (c.set || c.unset) && c.on(i) != c.set {
			continue
		}
		b.WriteString(shoptLine(name, c.on(i), c.print, c.posix))
	}
	return c.sh.print(b.String())
}

// one sets or asks for one option.
func (c *shoptCall) one(name string) int {
	sh := c.sh
	i := slices.Index(c.names, name)
	switch {
	case i < 0:
		sh.warnf("shopt: %s: invalid shell option name", name)
		return 1
	case (c.set || c.unset) && c.posix:
		sh.setByName(name, c.set)
		return 0
	case c.set || c.unset:
		sh.opts.switchShopt(i, c.set)
		sh.syncOptionVariables()
		return 0
	case !c.quiet:
		sh.print(shoptLine(name, c.on(i), c.print, c.posix))
	}
	return boolStatus(c.on(i))
}

func shoptLine(name string, on, print, posix bool) string {
	switch {
	case print && posix:
		return "set " + map[bool]string{true: "-o ", false: "+o "}[on] + name + "\n"
	case print:
		return "shopt " + map[bool]string{true: "-s ", false: "-u "}[on] + name + "\n"
	}
	return fmt.Sprintf("%-15s\t%s\n", name, onOff(on))
}

func (sh *shell) builtinUnset(args []string) int {
	var functions, variables, namerefs bool
	args = args[1:]
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for _, c := range a[1:] {
			switch c {
			case 'f':
				functions = true
			case 'v':
				variables = true
			case 'n':
				namerefs = true
			default:
				return sh.badOption("unset", "-"+string(c))
			}
		}
	}
	if functions && variables {
		sh.warnf("unset: cannot simultaneously unset a function and a variable")
		return 1
	}
	status := 0
	for _, a := range args {
		if functions {
			status |= sh.unsetFunction(a)
			continue
		}
		if err := sh.unsetVariable(a, variables, namerefs); err != nil {
			sh.warnf("unset: %v", err)
			status = 1
		}
	}
	return status
}

func (sh *shell) unsetFunction(name string) int {
	if f, ok := sh.funcs.Get(name); ok && f.fixed {
		sh.warnf("unset: %s: cannot unset: readonly function", name)
		return 1
	}
	sh.funcs.Delete(name)
	return 0
}

func (sh *shell) unsetVariable(a string, only, namerefs bool) error {
	r, ok := parseRef(a)
	if !ok {
		if !only && !strings.Contains(a, "[") { // a function then, of which there need be none
			if f, ok := sh.funcs.Get(a); ok && f.fixed {
				return fmt.Errorf("%s: cannot unset: readonly function", a)
			}
			sh.funcs.Delete(a)
			return nil
		}
		return fmt.Errorf("`%s': not a valid identifier", a)
	}
	if !namerefs {
		to, _ := sh.deref(r)
		if _, found := sh.vars.Get(to.name); found || to.name != r.name {
			r = to
		}
	}
	v, found := sh.vars.Get(r.name)
	switch {
	case !found:
		if !only && !r.hasSub && sh.hasFunction(a) {
			sh.unsetFunction(a)
		}
		return nil
	case v.attrs&attrReadonly != 0:
		return fmt.Errorf("%s: cannot unset: readonly variable", r.name)
	case r.hasSub:
		r.sub = sh.subscriptText(r.name, r.sub)
		return sh.unsetElement(r)
	}
	sh.unset(r.name)
	return nil
}

// getoptsState is how far getopts has got in a word of several letters.
type getoptsState struct {
	at    int // in the word
	index int // OPTIND that at belongs to
}

func (sh *shell) builtinGetopts(args []string) int {
	args = args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) < 2 {
		sh.usage("getopts")
		return 2
	}
	options, name, words := args[0], args[1], sh.args
	if len(args) > 2 {
		words = args[2:]
	}
	silent := strings.HasPrefix(options, ":")
	options = strings.TrimPrefix(options, ":")
	index := 1
	if n, ok := plainNumber(sh.getOr("OPTIND", "1")); ok && n > 0 {
		index = int(n)
	}
	state := sh.getopts
	if state.index != index {
		state = getoptsState{index: index}
	}
	g := getoptsCall{sh: sh, options: options, silent: silent, words: words, index: index, at: state.at}
	status := g.next()
	_ = sh.set("OPTIND", fmt.Sprint(g.index))
	sh.getopts = getoptsState{at: g.at, index: g.index}
	if !isName(name) {
		sh.warnf("getopts: `%s': not a valid identifier", name)
		return 1
	}
	if err := sh.set(name, g.opt); err != nil {
		sh.warnf("getopts: %v", err)
		return 1
	}
	return status
}

type getoptsCall struct {
	sh      *shell
	options string
	silent  bool
	words   []string
	index   int
	at      int
	opt     string
}

func (g *getoptsCall) next() int {
	sh := g.sh
	if g.at == 0 {
		if g.index > len(g.words) || len(g.words[g.index-1]) < 2 || g.words[g.index-1][0] != '-' {
			g.opt = "?"
			g.index = min(g.index, len(g.words)+1)
			sh.unset("OPTARG")
			return 1
		}
		if g.words[g.index-1] == "--" {
			g.index++
			g.opt = "?"
			sh.unset("OPTARG")
			return 1
		}
		g.at = 1
	}
	word := g.words[min(g.index-1, len(g.words)-1)]
	if g.at >= len(word) {
		g.at = 0
		g.index++
		return g.next()
	}
	c := word[g.at]
	g.at++
	rest := word[g.at:]
	advance := func() { g.at, g.index = 0, g.index+1 }
	i := strings.IndexByte(g.options, c)
	switch {
	case i < 0 || c == ':':
		if rest == "" {
			advance()
		}
		g.fail("illegal option", c)
		return 0
	case i+1 < len(g.options) && g.options[i+1] == ':':
		advance()
		if rest == "" {
			if g.index > len(g.words) {
				g.missing(c)
				return 0
			}
			rest = g.words[g.index-1]
			g.index++
		}
		_ = sh.set("OPTARG", rest)
	default:
		if rest == "" {
			advance()
		}
		sh.unset("OPTARG")
	}
	g.opt = string(c)
	return 0
}

func (g *getoptsCall) fail(what string, c byte) {
	g.opt = "?"
	if g.silent {
		_ = g.sh.set("OPTARG", string(c))
		return
	}
	g.sh.unset("OPTARG")
	if g.sh.getOr("OPTERR", "1") != "0" {
		fmt.Fprintf(g.sh.stderr(), "%s: %s -- %c\n", g.sh.name, what, c)
	}
}

func (g *getoptsCall) missing(c byte) {
	if g.silent {
		g.opt = ":"
		_ = g.sh.set("OPTARG", string(c))
		return
	}
	g.fail("option requires an argument", c)
}
