package shell

import (
	"fmt"
	"strings"
)

// declaring is what one call of declare, local, export, readonly or typeset asks for.
type declaring struct {
	sh         *shell
	name       string // of the builtin
	on, off    attrs
	print      bool
	functions  bool // -f
	names      bool // -F
	global     bool
	inherit    bool
	local      bool // makes locals
	removeFlag bool // export -n
	status     int
}

var declareFlags = map[rune]attrs{
	'a': attrIndexed, 'A': attrAssoc, 'i': attrInteger, 'l': attrLower, 'u': attrUpper, 'c': attrCapital,
	'n': attrNameref, 'r': attrReadonly, 't': attrTrace, 'x': attrExport,
}

func (sh *shell) declareWords(args []string) int {
	out := make([]declArg, len(args)-1)
	for i, a := range args[1:] {
		out[i].text = a
	}
	return sh.declare(args[0], out)
}

// declare is all builtins that declare variables.
func (sh *shell) declare(name string, args []declArg) int {
	d := &declaring{sh: sh, name: name}
	switch name {
	case "export":
		d.on = attrExport
	case "readonly":
		d.on = attrReadonly
	case "nameref":
		d.on = attrNameref
	case "local":
		if sh.localFrame() < 0 {
			sh.warnf("local: can only be used in a function")
			return 1
		}
		d.local = true
	}
	args, ok := d.options(args)
	if !ok {
		return 2
	}
	if name == "declare" || name == "typeset" || name == "nameref" {
		d.local = sh.localFrame() >= 0 && !d.global
	}
	switch {
	case d.functions || d.names:
		return d.functionArgs(args)
	case len(args) == 0:
		return d.list()
	case d.print && name != "export" && name != "readonly":
		return d.printArgs(args)
	}
	for _, a := range args {
		d.one(a)
	}
	return d.status
}

func (d *declaring) options(args []declArg) ([]declArg, bool) {
	for len(args) > 0 && args[0].array == nil {
		s := args[0].text
		if s == "--" {
			return args[1:], true
		}
		if len(s) < 2 || s[0] != '-' && s[0] != '+' {
			break
		}
		for _, c := range s[1:] {
			if !d.option(c, s[0] == '-') {
				d.sh.warnf("%s: %c%c: invalid option", d.name, s[0], c)
				d.sh.usage(d.name)
				return nil, false
			}
		}
		args = args[1:]
	}
	return args, true
}

func (d *declaring) option(c rune, on bool) bool {
	export := d.name == "export" || d.name == "readonly"
	switch c {
	case 'p':
		d.print = true
		return true
	case 'f':
		d.functions = true
		return d.name != "local"
	case 'F':
		d.functions, d.names = true, true
		return !export && d.name != "local"
	case 'g':
		d.global = true
		return !export
	case 'I':
		d.inherit = true
		return !export
	case 'n':
		if d.name == "export" {
			d.removeFlag = true
			d.on, d.off = 0, attrExport
			return true
		}
	}
	a, ok := declareFlags[c]
	if !ok || export && a&(attrIndexed|attrAssoc) == 0 {
		return false
	}
	if on {
		d.on |= a
	} else {
		d.off |= a
	}
	return true
}

// one declares one name.
func (d *declaring) one(a declArg) {
	sh := d.sh
	name, value, hasValue, add := a.text, "", false, a.add
	if a.array == nil {
		name, value, hasValue, add = cutAssignment(a.text)
	}
	if d.name == "local" && a.text == "-" {
		if f := sh.ownFrame(sh.localFrame()); f.opts == nil {
			was := sh.opts.set
			f.opts = &was
		}
		return
	}
	r, ok := parseRef(name)
	if !ok {
		sh.warnf("%s: `%s': not a valid identifier", d.name, a.text)
		d.status = 1
		return
	}
	if d.on&attrNameref != 0 && hasValue {
		if _, ok := parseRef(value); !ok && value != "" {
			sh.warnf("%s: `%s': invalid variable name for name reference", d.name, value)
			d.status = 1
			return
		}
		if value == r.name && !d.local {
			sh.warnf("%s: %s: nameref variable self references not allowed", d.name, value)
			d.status = 1
			return
		}
	}
	if a.array == nil && hasValue && strings.HasPrefix(value, "(") && !r.hasSub && d.arrayText(r.name) {
		if x, ok := parseArrayText(value); ok {
			a.array, hasValue = x, false
		}
	}
	a.add = add
	if err := d.apply(r, a, value, hasValue); err != nil {
		if err != errSaid {
			sh.warnf("%s: %v", d.name, err)
		}
		d.status = 1
	}
}

// arrayText reports whether a value in parentheses is an array's even when it came in a string.
func (d *declaring) arrayText(name string) bool {
	if d.on&(attrIndexed|attrAssoc) != 0 {
		return true
	}
	v := d.sh.lookup(name)
	return v != nil && v.isArray() && (!d.local || d.sh.frames[d.sh.localFrame()].find(name) >= 0)
}

func cutAssignment(s string) (name, value string, has, add bool) {
	i := strings.IndexByte(s, '=')
	if b := strings.IndexByte(s, '['); b >= 0 && b < i { // a key may have = in it
		if n := bracketLength(s[b:]); n > 0 && b+n+1 < len(s) {
			j := b + n + 1
			if s[j] == '=' {
				i = j
			} else if strings.HasPrefix(s[j:], "+=") {
				i = j + 1
			}
		}
	}
	if i < 0 {
		return s, "", false, false
	}
	name, value = s[:i], s[i+1:]
	if strings.HasSuffix(name, "+") {
		return name[:len(name)-1], value, true, true
	}
	return name, value, true, false
}

// target returns the variable to change, and the name that it has.
func (d *declaring) target(r ref) (*variable, ref) {
	sh := d.sh
	if d.on&attrNameref == 0 && d.off&attrNameref == 0 {
		if !d.local || sh.frames[sh.localFrame()].find(r.name) >= 0 {
			to, _ := sh.deref(r)
			r = to
		}
	}
	switch {
	case d.global && d.name != "local":
		return sh.global(r.name), r
	case d.local:
		i := sh.localFrame()
		old := sh.lookup(r.name)
		fresh := sh.frames[i].find(r.name) < 0
		if fresh && old != nil && old.attrs&attrReadonly != 0 && len(sh.frames) > 0 && sh.isGlobal(r.name) {
			return nil, r
		}
		v := sh.makeLocal(i, r.name)
		if fresh && d.inherit && old != nil {
			gen := sh.gen
			*v = *old.clone(gen)
		}
		return v, r
	}
	return sh.own(r.name), r
}

func (sh *shell) isGlobal(name string) bool {
	for _, f := range sh.frames {
		if f.find(name) >= 0 {
			return false
		}
	}
	return true
}

func (d *declaring) apply(r ref, a declArg, value string, hasValue bool) error {
	sh := d.sh
	v, r := d.target(r)
	if v == nil {
		return fmt.Errorf("%s: readonly variable", r.name)
	}
	if v.attrs&attrReadonly != 0 && (hasValue || a.array != nil || d.off&attrReadonly != 0) {
		return fmt.Errorf("%s: readonly variable", r.name)
	}
	if err := d.convert(v, r); err != nil {
		return err
	}
	if d.on&attrCase != 0 {
		v.attrs &^= attrCase
	}
	v.attrs = (v.attrs | d.on&^attrReadonly) &^ d.off
	if sh.on(optAllexport) {
		v.attrs |= attrExport
	}
	var err error
	switch {
	case a.array != nil:
		err = sh.assignArray(r.name, a.array, a.add, d.on&(attrIndexed|attrAssoc), v)
	case hasValue && v.attrs&attrNameref != 0 && !r.hasSub:
		v.str, v.set = value, true
	case hasValue:
		if r.hasSub {
			r.sub = sh.subscriptText(r.name, r.sub)
		}
		err = sh.store(v, r, value, a.add)
	}
	v.attrs |= d.on & attrReadonly
	return err
}

// convert makes an array of a variable that is to be one.
func (d *declaring) convert(v *variable, r ref) error {
	switch {
	case d.on&attrAssoc != 0 && v.attrs&attrIndexed != 0:
		return fmt.Errorf("%s: cannot convert indexed to associative array", r.name)
	case d.on&attrIndexed != 0 && v.attrs&attrAssoc != 0:
		return fmt.Errorf("%s: cannot convert associative to indexed array", r.name)
	case d.off&attrIndexed != 0 && v.attrs&attrIndexed != 0, d.off&attrAssoc != 0 && v.attrs&attrAssoc != 0:
		return fmt.Errorf("%s: cannot destroy array variables in this way", r.name)
	case d.on&attrAssoc != 0 && v.attrs&attrAssoc == 0:
		if v.set {
			v.assoc = new(assoc)
			v.assoc.set("0", v.str)
		}
		v.str = ""
	case d.on&attrIndexed != 0 && v.attrs&attrIndexed == 0:
		if v.set {
			v.list = indexedOf([]string{v.str})
		}
		v.str = ""
	}
	if r.hasSub && !v.isArray() && d.on&attrAssoc == 0 {
		v.attrs |= attrIndexed
		if v.set {
			v.list = indexedOf([]string{v.str})
			v.str = ""
		}
	}
	return nil
}

// list prints all variables that have the attributes asked for.
func (d *declaring) list() int {
	sh := d.sh
	var b strings.Builder
	if d.name == "local" {
		f := sh.frames[sh.localFrame()]
		for _, h := range f.saved {
			if v := sh.lookup(h.name); v != nil && v.set {
				b.WriteString(plainAssignment(h.name, v))
			}
		}
		return sh.print(b.String())
	}
	bare := d.on == 0 && !d.print
	sh.vars.Scan(func(name string, v *variable) bool {
		if d.on != 0 && v.attrs&d.on == 0 {
			return true
		}
		v = sh.lookup(name)
		if bare {
			if v.set {
				b.WriteString(plainAssignment(name, v))
			}
		} else {
			b.WriteString(declaration(name, v))
		}
		return true
	})
	if bare {
		sh.funcs.Scan(func(name string, f *function) bool {
			b.WriteString(printFunction(f))
			return true
		})
	}
	return sh.print(b.String())
}

// plainAssignment is a variable as set prints it.
func plainAssignment(name string, v *variable) string {
	switch {
	case v.isArray():
		d := strings.TrimSuffix(declaration(name, v), "\n")
		if i := strings.IndexByte(d, '='); i >= 0 {
			return name + d[i:] + "\n"
		}
		return name + "=()\n"
	case v.set:
		return name + "=" + quoteTrace(v.str) + "\n"
	}
	return ""
}

func (d *declaring) printArgs(args []declArg) int {
	sh := d.sh
	var b strings.Builder
	for _, a := range args {
		v, ok := sh.vars.Get(a.text)
		if ok && v.special != nil {
			v = sh.lookup(a.text)
		}
		if !ok {
			sh.warnf("%s: %s: not found", d.name, a.text)
			d.status = 1
			continue
		}
		b.WriteString(declaration(a.text, v))
	}
	if s := sh.print(b.String()); s != 0 {
		return s
	}
	return d.status
}

// functionArgs is declare -f and -F, export -f and readonly -f.
func (d *declaring) functionArgs(args []declArg) int {
	sh := d.sh
	var b strings.Builder
	if len(args) == 0 {
		sh.funcs.Scan(func(name string, f *function) bool {
			if d.names {
				b.WriteString("declare -f " + name + "\n")
			} else {
				b.WriteString(printFunction(f))
			}
			return true
		})
		return sh.print(b.String())
	}
	for _, a := range args {
		f, ok := sh.funcs.Get(a.text)
		if !ok {
			d.status = 1
			if d.name == "export" || d.name == "readonly" {
				sh.warnf("%s: %s: not a function", d.name, a.text)
			}
			continue
		}
		switch c := *f; {
		case d.name == "export" || d.on&attrExport != 0:
			c.export = !d.removeFlag
			sh.funcs.Set(a.text, &c)
		case d.name == "readonly" || d.on&attrReadonly != 0:
			c.fixed = true
			sh.funcs.Set(a.text, &c)
		case d.on&attrTrace != 0:
			c.trace = true
			sh.funcs.Set(a.text, &c)
		case d.names && sh.shopt(optExtdebug):
			fmt.Fprintf(&b, "%s %d %s\n", a.text, f.line, f.source)
		case d.names:
			b.WriteString(a.text + "\n")
		default:
			b.WriteString(printFunction(f))
		}
	}
	if s := sh.print(b.String()); s != 0 {
		return s
	}
	return d.status
}
