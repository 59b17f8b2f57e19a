package awk

import (
	"io"
	"strings"
)

func (in *interp) statements(body []stmt) (flow, error) {
	for _, s := range body {
		f, err := in.statement(s)
		if f != flowNone || err != nil {
			return f, err
		}
	}
	return flowNone, nil
}

func (in *interp) statement(s stmt) (flow, error) {
	switch s := s.(type) {
	case exprStmt:
		_, err := in.eval(s.x)
		return flowNone, err
	case printStmt:
		return flowNone, in.print(s)
	case ifStmt:
		ok, err := in.truth(s.cond)
		if err != nil {
			return flowNone, err
		}
		if ok {
			return in.statements(s.yes)
		}
		return in.statements(s.no)
	case blockStmt:
		return in.statements(s.body)
	case forStmt:
		return in.forLoop(s)
	case whileStmt:
		return in.whileLoop(s)
	case forInStmt:
		return in.forIn(s)
	case switchStmt:
		return in.switchOn(s)
	case deleteStmt:
		return flowNone, in.delete(s)
	case flowStmt:
		return s.kind, nil
	case returnStmt:
		if s.value == nil {
			in.result = value{}
			return flowReturn, nil
		}
		v, err := in.eval(s.value)
		in.result = v
		return flowReturn, err
	case exitStmt:
		if s.code != nil {
			v, err := in.eval(s.code)
			if err != nil {
				return flowNone, err
			}
			in.status = int(v.num()) & 0xff
		}
		return flowExit, errExit
	}
	return flowNone, nil
}

// after says what a loop does when its body was left by f: end is that it ends, with out for who is around it.
func after(f flow) (end bool, out flow) {
	switch f {
	case flowBreak:
		return true, flowNone
	case flowNone, flowContinue:
		return false, flowNone
	}
	return true, f
}

func (in *interp) whileLoop(s whileStmt) (flow, error) {
	for first := true; ; first = false {
		if err := in.tick(); err != nil {
			return flowNone, err
		}
		if !s.do || !first {
			ok, err := in.truth(s.cond)
			if err != nil || !ok {
				return flowNone, err
			}
		}
		f, err := in.statements(s.body)
		if err != nil {
			return f, err
		}
		if end, out := after(f); end {
			return out, nil
		}
	}
}

func (in *interp) forLoop(s forStmt) (flow, error) {
	if s.init != nil {
		if _, err := in.statement(s.init); err != nil {
			return flowNone, err
		}
	}
	for {
		if err := in.tick(); err != nil {
			return flowNone, err
		}
		if s.cond != nil {
			ok, err := in.truth(s.cond)
			if err != nil || !ok {
				return flowNone, err
			}
		}
		f, err := in.statements(s.body)
		if err != nil {
			return f, err
		}
		if end, out := after(f); end {
			return out, nil
		}
		if s.step != nil {
			if _, err := in.statement(s.step); err != nil {
				return flowNone, err
			}
		}
	}
}

func (in *interp) forIn(s forInStmt) (flow, error) {
	a, err := in.arrayOf(s.array)
	if err != nil {
		return flowNone, err
	}
	for _, key := range in.sorted(a) {
		if err := in.tick(); err != nil {
			return flowNone, err
		}
		if err := in.assign(s.key, input(key)); err != nil {
			return flowNone, err
		}
		f, err := in.statements(s.body)
		if err != nil {
			return f, err
		}
		if end, out := after(f); end {
			return out, nil
		}
	}
	return flowNone, nil
}

// sorted returns the keys in the order that PROCINFO["sorted_in"] asks for, else in the order in which they came.
func (in *interp) sorted(a *array) []string {
	keys := a.list()
	how := ""
	if v := in.prog.globals["PROCINFO"]; v != nil {
		if p := in.globals[v.index].array; p != nil && p.values["sorted_in"] != nil {
			how = in.text(p.values["sorted_in"].v)
		}
	}
	byIndex := func(i, j int) bool { return keys[i] < keys[j] }
	switch {
	case strings.HasPrefix(how, "@ind_num"):
		byIndex = func(i, j int) bool { return input(keys[i]).num() < input(keys[j]).num() }
	case strings.HasPrefix(how, "@val_"):
		byIndex = func(i, j int) bool {
			return compare(a.values[keys[i]].v, a.values[keys[j]].v, in.convfmt()) < 0
		}
	case !strings.HasPrefix(how, "@ind_str"):
		return keys
	}
	if strings.HasSuffix(how, "_desc") {
		ascending := byIndex
		byIndex = func(i, j int) bool { return ascending(j, i) }
	}
	_ = in.sort(keys, byIndex) // the loop over them sees that it is over too
	return keys
}

func (in *interp) switchOn(s switchStmt) (flow, error) {
	v, err := in.eval(s.x)
	if err != nil {
		return flowNone, err
	}
	start := -1
	for i, c := range s.cases {
		if c.value == nil {
			continue
		}
		ok, err := in.caseMatches(v, c.value)
		if err != nil {
			return flowNone, err
		}
		if ok {
			start = i
			break
		}
	}
	for i, c := range s.cases {
		if start < 0 && c.value == nil {
			start = i
		}
	}
	if start < 0 {
		return flowNone, nil
	}
	for _, c := range s.cases[start:] {
		f, err := in.statements(c.body)
		if f == flowBreak {
			return flowNone, err
		}
		if f != flowNone || err != nil {
			return f, err
		}
	}
	return flowNone, nil
}

func (in *interp) caseMatches(v value, x expr) (bool, error) {
	if r, ok := x.(regexExpr); ok {
		re, err := in.compile(r.source)
		if err != nil {
			return false, err
		}
		return re.Match([]byte(in.text(v)))
	}
	w, err := in.eval(x)
	return compare(v, w, in.convfmt()) == 0, err
}

func (in *interp) delete(s deleteStmt) error {
	a, err := in.arrayOf(s.array)
	if err != nil {
		return err
	}
	if s.subs != nil {
		key, err := in.key(s.subs)
		if err != nil {
			return err
		}
		return in.remove(a, key)
	}
	for _, key := range a.list() {
		if err := in.remove(a, key); err != nil {
			return err
		}
	}
	return nil
}

func (in *interp) print(s printStmt) error {
	if err := in.tick(); err != nil {
		return err
	}
	var out string
	switch {
	case s.format:
		text, err := in.sprintf(s.args)
		if err != nil {
			return err
		}
		out = text
	case len(s.args) == 0:
		out = in.whole() + in.vars[varORS].s
	default:
		var b strings.Builder
		for i, arg := range s.args {
			v, err := in.eval(arg)
			if err != nil {
				return err
			}
			if i > 0 {
				b.WriteString(in.vars[varOFS].s)
			}
			b.WriteString(v.str(in.vars[varOFMT].s))
		}
		b.WriteString(in.vars[varORS].s)
		out = b.String()
	}
	var w io.Writer = in.Out
	if s.redir != "" {
		v, err := in.eval(s.to)
		if err != nil {
			return err
		}
		if w, err = in.writer(string(s.redir), in.text(v)); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, out)
	return err
}
