package shell

import "slices"

// frame is what a call has put aside: the variables that its locals (or the assignments before a command) hide. There
// is one map of variables, so a look-up costs the same however deep the calls are, and scope is dynamic as in bash.
type frame struct {
	gen   uint64 // as of a variable: who may change it
	saved []hidden
	local bool    // of a function: local may be used
	opts  *uint32 // what set -o has switched, as it was before "local -"; nil without
}

// hidden is a variable that is out of sight; nil when there was none of that name.
type hidden struct {
	name string
	v    *variable
}

func (sh *shell) pushFrame(local bool) {
	sh.frames = append(sh.frames, &frame{gen: sh.gen, local: local})
}

// popFrame puts back what the innermost frame hid.
func (sh *shell) popFrame() {
	n := len(sh.frames) - 1
	f := sh.frames[n]
	sh.frames = sh.frames[:n]
	if f.opts != nil {
		sh.opts.set = *f.opts
	}
	for _, h := range slices.Backward(f.saved) {
		sh.restore(h)
	}
}

func (sh *shell) restore(h hidden) {
	if now, ok := sh.vars.Get(h.name); ok {
		sh.charge(-now.size())
	}
	if h.v == nil {
		sh.vars.Delete(h.name)
	} else {
		sh.vars.Set(h.name, h.v)
	}
	sh.changed(h.name)
}

// ownFrame returns frame i for a change.
func (sh *shell) ownFrame(i int) *frame {
	f := sh.frames[i]
	if f.gen != sh.gen {
		f = &frame{gen: sh.gen, saved: slices.Clone(f.saved), local: f.local, opts: f.opts}
		sh.frames[i] = f
	}
	return f
}

// localFrame is the index of the innermost function's frame, or -1.
func (sh *shell) localFrame() int {
	for i, f := range slices.Backward(sh.frames) {
		if f.local {
			return i
		}
	}
	return -1
}

func (f *frame) find(name string) int {
	return slices.IndexFunc(f.saved, func(h hidden) bool { return h.name == name })
}

// makeLocal hides a name until the frame is left, and returns the new variable in its place. One that is local there
// already is returned as it is.
func (sh *shell) makeLocal(i int, name string) *variable {
	if sh.frames[i].find(name) >= 0 {
		return sh.own(name)
	}
	old, _ := sh.vars.Get(name)
	f := sh.ownFrame(i)
	f.saved = append(f.saved, hidden{name, old})
	v := &variable{gen: sh.gen}
	if old != nil {
		if sh.fromTemporary(i, name) || sh.shopt(optLocalvarInherit) {
			*v = *old.clone(sh.gen)
		}
		v.attrs |= old.attrs & attrExport &^ attrNameref
		if old.special != nil {
			v.special = nil
		}
	}
	sh.vars.Set(name, v)
	return v
}

// fromTemporary reports whether a name's value comes from an assignment before a command, as seen below frame i.
func (sh *shell) fromTemporary(i int, name string) bool {
	for _, f := range slices.Backward(sh.frames[:i]) {
		if f.find(name) >= 0 {
			return !f.local
		}
	}
	return false
}

// unset removes a variable: a local of the innermost function stays hidden ground until it returns; one of a caller's
// is gone for good, and what it hid shows again.
func (sh *shell) unset(name string) {
	now, ok := sh.vars.Get(name)
	if ok {
		sh.charge(-now.size())
	}
	local := sh.localFrame()
	for i, f := range slices.Backward(sh.frames) {
		j := f.find(name)
		if j < 0 {
			continue
		}
		if i == local {
			break
		}
		f = sh.ownFrame(i)
		h := f.saved[j]
		f.saved = slices.Delete(f.saved, j, j+1)
		sh.restore(h)
		if f.local && i > 0 && !sh.frames[i-1].local { // a local in the place of an assignment before the call is one with it
			if g := sh.ownFrame(i - 1); g.find(name) >= 0 {
				j := g.find(name)
				h := g.saved[j]
				g.saved = slices.Delete(g.saved, j, j+1)
				sh.restore(h)
			}
		}
		return
	}
	sh.vars.Delete(name)
	sh.changed(name)
}

// global returns the variable of the outermost scope, for declare -g.
func (sh *shell) global(name string) *variable {
	for i := range sh.frames {
		j := sh.frames[i].find(name)
		if j < 0 {
			continue
		}
		f := sh.ownFrame(i)
		v := f.saved[j].v
		switch {
		case v == nil:
			v = &variable{gen: sh.gen}
		case v.gen != sh.gen:
			v = v.clone(sh.gen)
		}
		f.saved[j].v = v
		return v
	}
	return sh.own(name)
}
