package shell

import (
	"fmt"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// assignStatement makes name=value, name[i]=value or name=(…) as a command of its own. An error gives up the line.
func (sh *shell) assignStatement(a *syntax.Assign) {
	name := a.Name.Value
	if a.Array != nil {
		if v, ok := sh.vars.Get(name); ok && v.attrs&attrNameref != 0 {
			to, _ := sh.deref(ref{name: name})
			name = to.name
		}
		if err := sh.assignArray(name, a.Array, a.Append, 0, nil); err != nil {
			sh.assignFailed(err)
		}
		if sh.on(optXtrace) {
			sh.trace(name + assignOp(a) + printNode(a.Array))
		}
		return
	}
	r := ref{name: name}
	if a.Index != nil {
		r.sub, r.hasSub = sh.subscript(name, a.Index), true
	}
	value := sh.assignable(a.Value)
	if sh.on(optXtrace) {
		sh.trace(r.String() + assignOp(a) + quoteTrace(value))
	}
	if err := sh.assign(r, value, a.Append); err != nil {
		sh.assignFailed(err)
	}
}

func assignOp(a *syntax.Assign) string {
	if a.Append {
		return "+="
	}
	return "="
}

// assignArray gives name the elements of an array literal; with as set, the variable has those attributes first. target
// is the variable to change, if it is not the one that the name leads to.
func (sh *shell) assignArray(name string, x *syntax.ArrayExpr, add bool, as attrs, target *variable) error {
	v := sh.lookup(name)
	if target != nil {
		v = target
	}
	if v != nil && v.attrs&attrReadonly != 0 {
		return fmt.Errorf("%s: readonly variable", name)
	}
	isAssoc := as&attrAssoc != 0 || v != nil && v.attrs&attrAssoc != 0 && as&attrIndexed == 0
	elems := sh.arrayElements(x, isAssoc) // before the variable changes: its old elements may be named in it
	if v = target; v == nil {
		v = sh.own(name)
	}
	if v.special != nil {
		return nil
	}
	if isAssoc {
		return sh.fillAssoc(name, v, elems, add)
	}
	return sh.fillIndexed(name, v, elems, add)
}

// element of an array literal, expanded.
type element struct {
	key    string
	hasKey bool
	add    bool
	value  string
}

func (sh *shell) arrayElements(x *syntax.ArrayExpr, isAssoc bool) []element {
	var out []element
	for _, e := range x.Elems {
		switch {
		case e.Index != nil:
			value := ""
			if e.Value != nil {
				value = sh.assignable(e.Value)
			}
			out = append(out, element{key: sh.arithText(e.Index), hasKey: true, value: value})
		case e.Value != nil && isAssoc:
			for _, s := range sh.assocWords(e.Value) {
				out = append(out, element{value: s})
			}
		case e.Value != nil:
			for _, s := range sh.fields([]*syntax.Word{e.Value}) {
				out = append(out, element{value: s})
			}
		}
	}
	return out
}

// assocWords expands a bare word in an associative array's literal: one string, except for lists.
func (sh *shell) assocWords(w *syntax.Word) []string {
	return sh.fieldsNoGlob(w)
}

func (sh *shell) fieldsNoGlob(w *syntax.Word) []string {
	return []string{sh.assignable(w)}
}

func (sh *shell) fillIndexed(name string, v *variable, elems []element, add bool) error {
	old := v.list
	if v.attrs&attrIndexed == 0 {
		v.attrs |= attrIndexed
		if v.set && add {
			old = indexedOf([]string{v.str})
		}
		v.str = ""
	}
	if add && old != nil {
		v.list = old
	} else {
		sh.charge(-v.size())
		v.list = new(indexed)
	}
	v.set = true
	next := v.list.max() + 1
	for _, e := range elems {
		i := next
		if e.hasKey {
			i = sh.arith(e.key)
			if i < 0 {
				if i += v.list.max() + 1; i < 0 {
					sh.warnf("[%s]: bad array subscript", e.key)
					continue
				}
			}
		}
		prev, _ := v.list.m.Get(i)
		value, err := sh.combine(v.attrs, prev, e.value, e.add)
		if err != nil {
			return err
		}
		sh.charge(int64(len(value)-len(prev)) + 32)
		v.list.m.Set(i, value)
		next = i + 1
	}
	sh.changed(name)
	return nil
}

// fillAssoc takes [key]=value elements, or bare words as keys and values in turn.
func (sh *shell) fillAssoc(name string, v *variable, elems []element, add bool) error {
	v.attrs = v.attrs&^attrIndexed | attrAssoc
	v.str = ""
	if v.assoc == nil || !add {
		sh.charge(-v.size())
		v.assoc = new(assoc)
	}
	v.set = true
	for i := 0; i < len(elems); i++ {
		e := elems[i]
		if !e.hasKey {
			if len(elems) > 0 && elems[0].hasKey {
				sh.warnf("%s: %s: must use subscript when assigning associative array", name, e.value)
				continue
			}
			e.key, e.value = e.value, ""
			if i+1 < len(elems) {
				i++
				e.value = elems[i].value
			}
		}
		if e.key == "" {
			sh.warnf("%s: bad array subscript", `""`)
			continue
		}
		prev, _ := v.assoc.m.Get(e.key)
		value, err := sh.combine(v.attrs, prev.value, e.value, e.add)
		if err != nil {
			return err
		}
		sh.charge(int64(len(value)) + 64)
		v.assoc.set(e.key, value)
	}
	sh.changed(name)
	return nil
}

// declClause is declare and its kin as the parser sees them: arguments that are assignments are expanded as such.
func (sh *shell) declClause(cmd *syntax.DeclClause, prefix []*syntax.Assign) {
	sh.debugTrap(cmd)
	if sh.flow != flowNone {
		return
	}
	name := cmd.Variant.Value
	if fn, ok := sh.funcs.Get(name); ok {
		sh.callFunction(fn, append([]string{name}, sh.declWords(cmd)...))
		return
	}
	sh.substDone = false
	args := sh.declArgs(cmd)
	if sh.on(optXtrace) {
		sh.trace(name + traceDecl(args))
	}
	sh.status = exitStatus(sh.declare(name, args))
	sh.pipeStatus = []int{sh.status}
	if len(args) > 0 {
		sh.lastArg = args[len(args)-1].text
	} else {
		sh.lastArg = name
	}
}

func traceDecl(args []declArg) string {
	var b strings.Builder
	for _, a := range args {
		b.WriteString(" " + quoteTrace(a.text))
		if a.array != nil {
			b.WriteString("=" + printNode(a.array))
		}
	}
	return b.String()
}

// declArg is an argument of declare: a word, or a name with an array literal.
type declArg struct {
	text  string // the word; of an array its name and + for an append
	array *syntax.ArrayExpr
	add   bool
}

func (sh *shell) declArgs(cmd *syntax.DeclClause) []declArg {
	var out []declArg
	for _, a := range cmd.Args {
		switch {
		case a.Naked && a.Name == nil:
			for _, s := range sh.fields([]*syntax.Word{a.Value}) {
				out = append(out, declArg{text: s})
			}
		case a.Array != nil:
			out = append(out, declArg{text: a.Name.Value, array: a.Array, add: a.Append})
		default:
			text := a.Name.Value
			if a.Index != nil {
				text += "[" + sh.subscript(text, a.Index) + "]"
			}
			if !a.Naked {
				text += assignOp(a) + sh.assignable(a.Value)
			}
			out = append(out, declArg{text: text})
		}
	}
	return out
}

func (sh *shell) declWords(cmd *syntax.DeclClause) []string {
	var out []string
	for _, a := range sh.declArgs(cmd) {
		out = append(out, a.text)
	}
	return out
}

// parseArrayText parses "(…)" that came in a string, as in declare -a "x=(1 2)".
func parseArrayText(text string) (*syntax.ArrayExpr, bool) {
	p := parsers.Get().(*syntax.Parser)
	defer parsers.Put(p)
	f, err := p.Parse(strings.NewReader("_="+text), "")
	if err != nil || len(f.Stmts) != 1 {
		return nil, false
	}
	call, ok := f.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) != 1 || len(call.Args) > 0 {
		return nil, false
	}
	return call.Assigns[0].Array, call.Assigns[0].Array != nil
}

// declaration is a variable as declare -p prints it, with a newline.
func declaration(name string, v *variable) string {
	flags := v.flags()
	if flags == "" {
		flags = "-"
	}
	head := "declare -" + flags + " " + name
	switch {
	case v.attrs&attrAssoc != 0:
		if v.assoc == nil {
			return head + "\n"
		}
		var b strings.Builder
		for _, k := range v.assoc.keys() {
			e, _ := v.assoc.m.Get(k)
			fmt.Fprintf(&b, "[%s]=%s ", assocKey(k), doubleQuote(e.value))
		}
		return head + "=(" + b.String() + ")\n"
	case v.attrs&attrIndexed != 0:
		if v.list == nil {
			return head + "\n"
		}
		return head + "=" + indexedText(v) + "\n"
	case !v.set:
		return head + "\n"
	}
	return head + "=" + doubleQuote(v.str) + "\n"
}

func indexedText(v *variable) string {
	var words []string
	v.list.m.Scan(func(i int64, s string) bool {
		words = append(words, "["+strconv.FormatInt(i, 10)+"]="+doubleQuote(s))
		return true
	})
	return "(" + strings.Join(words, " ") + ")"
}
