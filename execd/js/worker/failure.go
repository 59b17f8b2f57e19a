package worker

import (
	"unsafe"

	"modernc.org/libquickjs"
)

// A module that does not await is a function that gives a promise, of which the engine takes the result and forgets the
// promise. When it throws, the engine has noted a rejection that nobody can take, beside that of the import, which somebody
// can. So the exceptions of modules are noted as well, and the prelude leaves one rejection out for each.

// moduleOf is a module of the engine.
type moduleOf = libquickjs.TJSModuleDef

// noteModules notes what modules have thrown since the last time.
func (e *engine) noteModules() {
	var fresh, known []*moduleOf
	for at, m := range e.modules() {
		switch {
		case m.F__ccgo256 == 0: // eval_has_exception
		case e.failedOnes[at]:
			known = append(known, m)
		default:
			e.failedOnes[at] = true
			fresh = append(fresh, m)
		}
	}
	for i, m := range fresh {
		if e.threw(m, fresh[:i], fresh[i+1:], known) {
			e.note(m.Feval_exception, m.Feval_exception, noteModule)
		}
	}
}

// threw reports whether a module has thrown its exception itself: otherwise one that it imports has. Of modules that import
// each other, any one counts for the one that it was.
func (e *engine) threw(m *moduleOf, before, after, known []*moduleOf) bool {
	if m.F__ccgo144&0xff != 0 { // has_tla: its promise is waited for
		return false
	}
	if !e.importsFailed(m) {
		return true
	}
	for _, list := range [][]*moduleOf{before, known} {
		for _, other := range list {
			if other.Feval_exception == m.Feval_exception {
				return false
			}
		}
	}
	for _, other := range after {
		if other.Feval_exception == m.Feval_exception && !e.importsFailed(other) {
			return false
		}
	}
	return true
}

// importsFailed reports whether a module imports one that has failed.
func (e *engine) importsFailed(m *moduleOf) bool {
	if m.Freq_module_entries_count == 0 {
		return false
	}
	entries := unsafe.Slice((*libquickjs.TJSReqModuleEntry)(pointerAt(m.Freq_module_entries)), m.Freq_module_entries_count)
	for _, entry := range entries {
		if entry.Fmodule != 0 && (*moduleOf)(pointerAt(entry.Fmodule)).F__ccgo256 != 0 {
			return true
		}
	}
	return false
}

// modules are those that were loaded, by their addresses: modules stay where they are to the end of the isolate.
func (e *engine) modules() func(yield func(uintptr, *moduleOf) bool) {
	return func(yield func(uintptr, *moduleOf) bool) {
		var c libquickjs.TJSContext
		head := e.context + unsafe.Offsetof(c.Floaded_modules)
		for at := (*libquickjs.Tlist_head)(pointerAt(head)).Fnext; at != head; at = (*libquickjs.Tlist_head)(pointerAt(at)).Fnext {
			module := at - unsafe.Offsetof(moduleOf{}.Flink)
			if !yield(module, (*moduleOf)(pointerAt(module))) {
				return
			}
		}
	}
}
