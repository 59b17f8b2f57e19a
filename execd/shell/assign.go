package shell

import (
	"fmt"
	"strconv"
	"strings"
)

// ref is a variable or an element of one. sub is an arithmetic expression for an indexed array and a key for an
// associative one; "@" and "*" stand for all.
type ref struct {
	name   string
	sub    string
	hasSub bool
}

func (r ref) String() string {
	if r.hasSub {
		return r.name + "[" + r.sub + "]"
	}
	return r.name
}

// parseRef takes "name" or "name[sub]" apart.
func parseRef(s string) (ref, bool) {
	i := strings.IndexByte(s, '[')
	if i < 0 {
		return ref{name: s}, isName(s)
	}
	if !isName(s[:i]) || !strings.HasSuffix(s, "]") || len(s) < i+3 {
		return ref{}, false
	}
	return ref{s[:i], s[i+1 : len(s)-1], true}, true
}

// lookup returns the variable of a name as it is now, a special one computed; nil when there is none. It must not be
// changed.
func (sh *shell) lookup(name string) *variable {
	v, ok := sh.vars.Get(name)
	if !ok {
		return nil
	}
	if v.special == nil {
		return v
	}
	c := &variable{attrs: v.attrs, set: true}
	if v.special.list != nil {
		c.attrs |= attrIndexed
		c.list = indexedOf(v.special.list(sh))
	} else {
		c.str = v.special.get(sh)
	}
	return c
}

// own returns the variable of a name for a change, made when there is none.
func (sh *shell) own(name string) *variable {
	v, ok := sh.vars.Get(name)
	switch {
	case !ok:
		v = &variable{gen: sh.gen}
		sh.vars.Set(name, v)
	case v.gen != sh.gen:
		v = v.clone(sh.gen)
		sh.vars.Set(name, v)
	}
	return v
}

// deref follows namerefs. The last name of a chain need not be there. ok is false for a loop.
func (sh *shell) deref(r ref) (_ ref, ok bool) {
	for range 8 {
		v, found := sh.vars.Get(r.name)
		if !found || v.attrs&attrNameref == 0 || !v.set || v.str == "" {
			return r, true
		}
		to, valid := parseRef(v.str)
		if !valid {
			return r, true
		}
		if to.hasSub && r.hasSub {
			return r, true
		}
		if to.hasSub {
			to.sub = sh.subscriptText(to.name, to.sub)
		}
		if r.hasSub {
			to.sub, to.hasSub = r.sub, true
		}
		r = to
	}
	return r, false
}

// get returns the value of a plain name, through namerefs.
func (sh *shell) get(name string) (string, bool) {
	v := sh.lookup(name)
	if v == nil || v.attrs&attrNameref == 0 {
		return v.scalar()
	}
	r, ok := sh.deref(ref{name: name})
	if !ok {
		sh.warnf("warning: %s: circular name reference", name)
		return "", false
	}
	return sh.element(r)
}

// getOr is get with a value for what is not set.
func (sh *shell) getOr(name, otherwise string) string {
	if s, ok := sh.get(name); ok {
		return s
	}
	return otherwise
}

// element returns one element, or the plain value.
func (sh *shell) element(r ref) (string, bool) {
	v := sh.lookup(r.name)
	if !r.hasSub {
		return v.scalar()
	}
	if v == nil {
		return "", false
	}
	if v.attrs&attrAssoc != 0 {
		if v.assoc == nil {
			return "", false
		}
		e, ok := v.assoc.m.Get(r.sub)
		return e.value, ok
	}
	i := sh.arith(r.sub)
	if v.attrs&attrIndexed == 0 {
		if i == 0 || i == -1 {
			return v.str, v.set
		}
		return "", false
	}
	if v.list == nil {
		return "", false
	}
	if i < 0 {
		if i += v.list.max() + 1; i < 0 {
			sh.warnf("%s: bad array subscript", r.name)
			return "", false
		}
	}
	return v.list.m.Get(i)
}

// set assigns a plain name. The error is in the shell's words.
func (sh *shell) set(name, value string) error {
	return sh.assign(ref{name: name}, value, false)
}

// assign gives a value to a name or an element, through namerefs and by the variable's attributes; add appends or, for
// integers, adds.
func (sh *shell) assign(r ref, value string, add bool) error {
	to, ok := sh.deref(r)
	if !ok {
		sh.warnf("warning: %s: circular name reference", r.name)
		return errSaid
	}
	v := sh.lookup(to.name)
	if v != nil && v.attrs&attrNameref != 0 && !to.hasSub {
		if _, valid := parseRef(value); !valid && value != "" {
			return fmt.Errorf("`%s': invalid variable name for name reference", value)
		}
	}
	if v != nil && v.attrs&attrReadonly != 0 {
		return fmt.Errorf("%s: readonly variable", to.name)
	}
	return sh.store(sh.own(to.name), to, value, add)
}

// store assigns to a variable that the shell owns, readonly or not.
func (sh *shell) store(v *variable, r ref, value string, add bool) error {
	if v.special != nil {
		defer sh.changed(r.name)
		if v.special.assign == nil {
			return nil
		}
		return v.special.assign(sh, value)
	}
	if r.hasSub && !v.isArray() {
		v.attrs |= attrIndexed
		if v.set {
			v.list = indexedOf([]string{v.str})
		}
		v.str, v.set = "", false
	}
	old, slot, err := sh.slot(v, r)
	if err != nil {
		return err
	}
	value, err = sh.combine(v.attrs, old, value, add)
	if err != nil {
		return err
	}
	sh.charge(int64(len(value) - len(old)))
	slot(value)
	if sh.on(optAllexport) {
		v.attrs |= attrExport
	}
	sh.changed(r.name)
	return nil
}

// combine is what a variable with these attributes holds after an assignment.
func (sh *shell) combine(a attrs, old, value string, add bool) (string, error) {
	if a&attrInteger != 0 {
		n := sh.arith(value)
		if add {
			n += sh.arith(old)
		}
		return strconv.FormatInt(n, 10), nil
	}
	if add {
		sh.room(len(old) + len(value))
		value = old + value
	}
	return a.cased(value), nil
}

// slot is where a value goes: what is there, and how to put another in its place.
func (sh *shell) slot(v *variable, r ref) (old string, put func(string), err error) {
	switch {
	case v.attrs&attrAssoc != 0:
		key := r.sub
		if !r.hasSub {
			key = "0"
		}
		if v.assoc == nil {
			v.assoc = new(assoc)
		}
		e, _ := v.assoc.m.Get(key)
		return e.value, func(s string) { v.set = true; v.assoc.set(key, s) }, nil
	case v.attrs&attrIndexed != 0:
		i, err := sh.index(v, r)
		if err != nil {
			return "", nil, err
		}
		if v.list == nil {
			v.list = new(indexed)
		}
		old, _ := v.list.m.Get(i)
		return old, func(s string) { v.set = true; v.list.m.Set(i, s) }, nil
	}
	return v.str, func(s string) { v.str, v.set = s, true }, nil
}

// index evaluates the subscript of an indexed array; a negative one counts from the end.
func (sh *shell) index(v *variable, r ref) (int64, error) {
	if !r.hasSub {
		return 0, nil
	}
	if strings.TrimSpace(r.sub) == "" || r.sub == "@" || r.sub == "*" {
		return 0, fmt.Errorf("%s[%s]: bad array subscript", r.name, r.sub)
	}
	i := sh.arith(r.sub)
	if i < 0 {
		max := int64(-1)
		if v.list != nil {
			max = v.list.max()
		} else if v.set {
			max = 0
		}
		if i += max + 1; i < 0 {
			return 0, fmt.Errorf("%s[%s]: bad array subscript", r.name, r.sub)
		}
	}
	return i, nil
}

// setList makes a name an indexed array of these values.
func (sh *shell) setList(name string, values []string) error {
	to, _ := sh.deref(ref{name: name})
	if v := sh.lookup(to.name); v != nil && v.attrs&attrReadonly != 0 {
		return fmt.Errorf("%s: readonly variable", to.name)
	}
	v := sh.own(to.name)
	sh.charge(-v.size())
	v.special, v.str, v.set, v.assoc = nil, "", true, nil
	v.attrs = v.attrs&^attrAssoc | attrIndexed
	v.list = new(indexed)
	for i, s := range values {
		sh.charge(int64(len(s)) + 32)
		v.list.m.Set(int64(i), v.attrs.cased(s))
	}
	sh.changed(to.name)
	return nil
}

// unsetElement removes one element; "@" and "*" all of an indexed array's.
func (sh *shell) unsetElement(r ref) error {
	v := sh.lookup(r.name)
	if v == nil {
		return nil
	}
	switch {
	case v.attrs&attrAssoc != 0:
		if v = sh.own(r.name); v.assoc != nil {
			v.assoc.m.Delete(r.sub)
		}
	case v.attrs&attrIndexed != 0:
		v = sh.own(r.name)
		if r.sub == "@" || r.sub == "*" {
			v.list = nil
			return nil
		}
		i, err := sh.index(v, r)
		if err != nil {
			return fmt.Errorf("[%s]: bad array subscript", r.sub)
		}
		if v.list != nil {
			v.list.m.Delete(i)
		}
	default:
		if i, err := sh.index(v, r); err != nil || i != 0 {
			return fmt.Errorf("%s: not an array variable", r.name)
		}
		sh.unset(r.name)
	}
	return nil
}
