package shell

import (
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// parameter is what a parameter stands for before an operator changes it.
type parameter struct {
	name string // as messages name it
	ref  ref    // where := assigns
	vals []string
	set  bool
	list bool // $@, $*, and arrays with [@] or [*]
	star bool // joined when quoted
	v    *variable
}

// param expands $name and ${…}.
func (sh *shell) param(out []piece, pe *syntax.ParamExp, m mode) []piece {
	if pe.Short && pe.Index == nil && pe.Exp == nil && pe.Param != nil && isNameStart(pe.Param.Value[0]) && pe.Param.Value != "_" {
		if s, ok := sh.get(pe.Param.Value); ok {
			return appendComputed(out, s, m)
		}
	}
	sh.checkParam(pe)
	if pe.Names != 0 {
		return sh.emit(out, parameter{
			vals: sh.namesWithPrefix(pe.Param.Value), set: true, list: true, star: pe.Names == syntax.NamesPrefix,
		}, m)
	}
	p, done := sh.parameter(pe)
	if done {
		return sh.emit(out, p, m)
	}
	switch {
	case pe.Length:
		return appendComputed(out, sh.length(pe, p), m)
	case pe.Slice != nil:
		sh.needSet(pe, p)
		return sh.emit(out, sh.slice(pe, p), m)
	case pe.Repl != nil:
		sh.needSet(pe, p)
		return sh.emit(out, sh.replaceIn(p, pe.Repl, m), m)
	case pe.Exp != nil:
		return sh.operator(out, pe, p, m)
	}
	sh.needSet(pe, p)
	return sh.emit(out, p, m)
}

func isNameStart(c byte) bool { return isNameByte(c) && (c < '0' || c > '9') }

func appendComputed(out []piece, s string, m mode) []piece {
	if s == "" && !m.quotes {
		return out
	}
	return append(out, m.computed(s))
}

// checkParam refuses what the parser lets through for other shells.
func (sh *shell) checkParam(pe *syntax.ParamExp) {
	if pe.Param == nil || pe.Width || pe.IsSet || pe.Flags != nil || len(pe.Modifiers) > 0 || pe.NestedParam != nil {
		sh.fatalf("${...}: bad substitution")
	}
}

// needSet is nounset.
func (sh *shell) needSet(pe *syntax.ParamExp, p parameter) {
	if p.set || !sh.on(optNounset) || p.list && (p.name == "@" || p.name == "*" || p.ref.hasSub) {
		return
	}
	sh.unbound("%s: unbound variable", p.name)
}

// unbound ends a script that uses what is not set; an interactive shell goes on with the next line.
func (sh *shell) unbound(format string, args ...any) {
	if sh.interactive {
		sh.fatalf(format, args...)
	}
	sh.exitf(sh.unboundStatus(), format, args...)
}

// unboundStatus is the status of a script that nounset ends: bash -c gives another than bash file.
func (sh *shell) unboundStatus() int {
	if len(sh.calls) > 0 && sh.calls[0].name == "main" && !sh.calls[0].fn || sh.subshells > 0 {
		return 1
	}
	return 127
}

// parameter looks a parameter up. done says that the value is already what the whole expansion stands for.
func (sh *shell) parameter(pe *syntax.ParamExp) (p parameter, done bool) {
	name := pe.Param.Value
	sub, hasSub := "", false
	if pe.Index != nil {
		sub, hasSub = sh.subscript(name, pe.Index), true
	}
	if pe.Excl {
		return sh.indirect(name, sub, hasSub, pe)
	}
	return sh.find(ref{name, sub, hasSub}), false
}

// find looks up what a reference stands for: a variable, an element, all elements, or a special parameter.
func (sh *shell) find(r ref) parameter {
	if !r.hasSub {
		if p, ok := sh.specialParameter(r.name); ok {
			return p
		}
	}
	p := parameter{name: r.String(), ref: r}
	to, ok := sh.deref(r)
	if !ok {
		sh.warnf("warning: %s: circular name reference", r.name)
		return p
	}
	p.v = sh.lookup(to.name)
	if to.hasSub && (to.sub == "@" || to.sub == "*") {
		p.vals = p.v.values()
		p.set, p.list, p.star = len(p.vals) > 0, true, to.sub == "*"
		p.ref = to
		return p
	}
	s, set := sh.element(to)
	p.set = set
	if set {
		p.vals = []string{s}
	}
	return p
}

func (sh *shell) specialParameter(name string) (parameter, bool) {
	one := func(s string) (parameter, bool) {
		return parameter{name: name, ref: ref{name: name}, vals: []string{s}, set: true}, true
	}
	switch name {
	case "@", "*":
		return parameter{name: name, vals: sh.args, set: len(sh.args) > 0, list: true, star: name == "*"}, true
	case "#":
		return one(strconv.Itoa(len(sh.args)))
	case "?":
		return one(strconv.Itoa(sh.status))
	case "-":
		return one(sh.flags())
	case "$":
		return one(strconv.Itoa(sh.rootPID()))
	case "!":
		if sh.lastBg == 0 {
			return parameter{name: name}, true
		}
		return one(strconv.Itoa(sh.lastBg))
	case "_":
		return one(sh.lastArg)
	case "0":
		return one(sh.name)
	}
	n, err := strconv.Atoi(name)
	if err != nil {
		return parameter{}, false
	}
	if n >= 1 && n <= len(sh.args) {
		return one(sh.args[n-1])
	}
	return parameter{name: name}, true
}

// indirect is ${!name}: the variable that name's value names. ${!a[@]} lists subscripts, and of a nameref it is the name
// referred to.
func (sh *shell) indirect(name, sub string, hasSub bool, pe *syntax.ParamExp) (p parameter, done bool) {
	if hasSub && (sub == "@" || sub == "*") && pe.Exp == nil && pe.Slice == nil && pe.Repl == nil {
		to, _ := sh.deref(ref{name: name})
		keys := sh.lookup(to.name).keys()
		return parameter{name: name, vals: keys, set: true, list: true, star: sub == "*"}, true
	}
	if v, ok := sh.vars.Get(name); ok && v.attrs&attrNameref != 0 && !hasSub {
		return parameter{name: name, vals: []string{v.str}, set: v.set}, pe.Exp == nil && !pe.Length
	}
	from := sh.find(ref{name, sub, hasSub})
	if !from.set || len(from.vals) == 0 {
		if pe.Exp != nil && !needsTarget(pe.Exp.Op) && !from.list {
			return from, false
		}
		if from.list && pe.Exp == nil || sh.isSpecial(name) {
			return parameter{name: name}, false
		}
		sh.fatalf("%s: invalid indirect expansion", name)
	}
	target := strings.Join(from.vals, " ")
	if p, ok := sh.specialParameter(target); ok {
		return p, false
	}
	r, ok := parseRef(target)
	if !ok {
		sh.fatalf("%s: invalid variable name", target)
	}
	if r.hasSub {
		r.sub = sh.subscriptText(r.name, r.sub)
	}
	return sh.find(r), false
}

func needsTarget(op syntax.ParExpOperator) bool {
	switch op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		return false
	}
	return true
}

func (sh *shell) isSpecial(name string) bool {
	_, ok := sh.specialParameter(name)
	return ok
}

func (sh *shell) namesWithPrefix(prefix string) []string {
	var names []string
	sh.vars.Ascend(prefix, func(name string, v *variable) bool {
		if !strings.HasPrefix(name, prefix) {
			return false
		}
		if v.set || v.list != nil || v.assoc != nil {
			names = append(names, name)
		}
		return true
	})
	sort.Strings(names)
	return names
}

// emit makes pieces of values.
func (sh *shell) emit(out []piece, p parameter, m mode) []piece {
	if !p.list {
		s := ""
		if len(p.vals) > 0 {
			s = p.vals[0]
		}
		return appendComputed(out, s, m)
	}
	if p.star && (m.quotes || m.noSplit) {
		if len(p.vals) == 0 && m.quotes {
			return append(out, piece{"", quoted})
		}
		return append(out, m.computed(strings.Join(p.vals, sh.separator())))
	}
	between := piece{kind: boundary}
	if sep := sh.separator(); !m.quotes && !m.noSplit && sep != "" && !strings.Contains(" \t\n", sep) {
		between = piece{sep, expanded} // as if they were joined and split: empty ones stay
	}
	for i, s := range p.vals {
		if i > 0 {
			out = append(out, between)
		}
		out = append(out, m.computed(s))
	}
	return out
}

// separator is what joins "$*": the first character of $IFS.
func (sh *shell) separator() string {
	s, ok := sh.get("IFS")
	if !ok {
		return " "
	}
	_, n := utf8.DecodeRuneInString(s)
	return s[:n]
}

func (sh *shell) length(pe *syntax.ParamExp, p parameter) string {
	if p.list {
		if p.ref.hasSub && sh.on(optNounset) && (p.v == nil || !p.v.set || !p.v.isArray()) {
			sh.fatalf("%s: unbound variable", p.ref.name)
		}
		return strconv.Itoa(len(p.vals))
	}
	sh.needSet(pe, p)
	if len(p.vals) == 0 {
		return "0"
	}
	return strconv.Itoa(utf8.RuneCountInString(p.vals[0]))
}

// operator expands ${name op word}.
func (sh *shell) operator(out []piece, pe *syntax.ParamExp, p parameter, m mode) []piece {
	op, word := pe.Exp.Op, pe.Exp.Word
	null := !p.set || len(p.vals) == 0 || !p.list && p.vals[0] == "" || p.list && allEmpty(p, sh.separator())
	switch op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if !p.set || op == syntax.AlternateUnsetOrNull && null {
			if m.quotes && p.list {
				return out
			}
			return sh.emit(out, parameter{vals: []string{""}}, m)
		}
		return sh.wordPieces(out, word, m)
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		if !p.set || op == syntax.DefaultUnsetOrNull && null {
			return sh.wordPieces(out, word, m)
		}
		return sh.emit(out, p, m)
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if p.set && (op == syntax.AssignUnset || !null) {
			return sh.emit(out, p, m)
		}
		return sh.assignDefault(out, pe, p, m)
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		if !p.set || op == syntax.ErrorUnsetOrNull && null {
			sh.unsetError(p, word, op)
		}
		return sh.emit(out, p, m)
	case syntax.OtherParamOps:
		return sh.transform(out, pe, p, m)
	}
	sh.needSet(pe, p)
	return sh.emit(out, sh.each(p, sh.editor(op, word)), m)
}

func allEmpty(p parameter, sep string) bool {
	if len(p.vals) == 1 {
		return p.vals[0] == ""
	}
	return p.star && strings.Join(p.vals, sep) == ""
}

// wordPieces expands the word of an operator: inside quotes as they are, else with literal text that may be split.
func (sh *shell) wordPieces(out []piece, w *syntax.Word, m mode) []piece {
	if w == nil {
		return append(out, m.computed(""))
	}
	n := len(out)
	if m.quotes {
		out = sh.pieces(out, w.Parts, mode{quotes: true, here: m.here, brace: true, noSplit: m.noSplit, noTilde: true})
	} else {
		out = sh.pieces(out, w.Parts, mode{split: true, brace: true, noSplit: m.noSplit, assign: m.assign && m.noSplit})
	}
	if len(out) == n && m.quotes && !onlyLists(w.Parts) {
		out = append(out, piece{"", quoted})
	}
	return out
}

func (sh *shell) assignDefault(out []piece, pe *syntax.ParamExp, p parameter, m mode) []piece {
	if p.ref.name == "" || !isName(p.ref.name) {
		sh.fatalf("$%s: cannot assign in this way", p.name)
	}
	if p.list {
		sh.fatalf("%s: bad array subscript", p.name)
	}
	var value string
	if pe.Exp.Word != nil {
		mm := mode{noSplit: true, brace: true, assign: true}
		if m.quotes {
			mm = mode{noSplit: true, brace: true, quotes: true, noTilde: true}
		}
		value = sh.join(sh.pieces(nil, pe.Exp.Word.Parts, mm))
	}
	if err := sh.assign(p.ref, value, false); err != nil {
		sh.assignFailed(err)
	}
	s, _ := sh.element(mustDeref(sh, p.ref))
	return sh.emit(out, parameter{vals: []string{s}}, m)
}

func mustDeref(sh *shell, r ref) ref {
	to, _ := sh.deref(r)
	return to
}

// assignFailed gives up the line for an assignment that could not be made.
func (sh *shell) assignFailed(err error) {
	if err != errSaid {
		sh.warnf("%v", err)
	}
	panic(abort{status: 1, exit: sh.on(optPosix)})
}

func (sh *shell) unsetError(p parameter, w *syntax.Word, op syntax.ParExpOperator) {
	text := sh.oneString(w)
	if w == nil || len(w.Parts) == 0 {
		text = "parameter not set"
		if op == syntax.ErrorUnsetOrNull {
			text = "parameter null or not set"
		}
	}
	sh.unbound("%s: %s", p.name, text)
}

// each applies an edit to every value.
func (sh *shell) each(p parameter, edit func(string) string) parameter {
	vals := make([]string, len(p.vals))
	for i, s := range p.vals {
		vals[i] = edit(s)
	}
	p.vals = vals
	return p
}

// editor returns what an operator with a pattern does to a value.
func (sh *shell) editor(op syntax.ParExpOperator, w *syntax.Word) func(string) string {
	switch op {
	case syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll:
		return sh.caseEditor(op, w)
	}
	pat := sh.compile(sh.patternOf(w), false)
	switch op {
	case syntax.RemSmallPrefix:
		return func(s string) string { return s[pat.prefix(sh, s, false):] }
	case syntax.RemLargePrefix:
		return func(s string) string { return s[pat.prefix(sh, s, true):] }
	case syntax.RemSmallSuffix:
		return func(s string) string { return s[:pat.suffix(sh, s, false)] }
	case syntax.RemLargeSuffix:
		return func(s string) string { return s[:pat.suffix(sh, s, true)] }
	}
	sh.fatalf("bad substitution")
	return nil
}

func (sh *shell) caseEditor(op syntax.ParExpOperator, w *syntax.Word) func(string) string {
	fits := func(string) bool { return true }
	if w != nil && len(w.Parts) > 0 {
		pat := sh.compile(sh.patternOf(w), false)
		fits = func(s string) bool { return pat.match(sh, s) }
	}
	change := strings.ToUpper
	if op == syntax.LowerFirst || op == syntax.LowerAll {
		change = strings.ToLower
	}
	first := op == syntax.UpperFirst || op == syntax.LowerFirst
	return func(s string) string {
		var b strings.Builder
		for i, r := range s {
			c := string(r)
			if (!first || i == 0) && fits(c) {
				c = change(c)
			}
			b.WriteString(c)
		}
		return b.String()
	}
}
