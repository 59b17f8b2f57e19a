package worker

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libquickjs"
	"modernc.org/quickjs"
)

// engine is what is behind a VM of the wrapper. The wrapper tells nobody of rejected promises, gives modules no
// import.meta and errors of imports no code; the engine can do all three (quickjs.h). One process has one.
type engine struct {
	tls     *libc.TLS
	runtime uintptr // *libquickjs.TJSRuntime
	context uintptr // *libquickjs.TJSContext

	loader     *modules
	meta       libquickjs.TJSValue // a function of the prelude
	rejections libquickjs.TJSValue // a list of the prelude
	noted      uint32              // how long it is
	lost       bool                // a rejection could not be noted for want of memory
	failedOnes map[uintptr]bool    // modules that are known to have failed
}

// current is for what the engine calls, which are plain functions.
var current *engine

// engineOf finds the engine of a VM, whose fields are not exported: a test notices when they change.
func engineOf(vm *quickjs.VM) (*engine, error) {
	v := reflect.ValueOf(vm).Elem()
	context, runtime := v.FieldByName("cContext"), v.FieldByName("runtime")
	if context.Kind() != reflect.Uintptr || runtime.Kind() != reflect.Pointer || runtime.Elem().Kind() != reflect.Struct {
		return nil, errWrapper
	}
	pointer, tls := runtime.Elem().FieldByName("cRuntime"), runtime.Elem().FieldByName("tls")
	if pointer.Kind() != reflect.Uintptr || tls.Kind() != reflect.Pointer || tls.Type() != reflect.TypeFor[*libc.TLS]() {
		return nil, errWrapper
	}
	return &engine{tls: (*libc.TLS)(tls.UnsafePointer()), runtime: uintptr(pointer.Uint()), context: uintptr(context.Uint())}, nil
}

var errWrapper = errors.New("modernc.org/quickjs keeps the engine elsewhere than it did")

// attach has the engine call us. The prelude has left what it needs in these two properties of the global object.
func (e *engine) attach(loader *modules, meta, rejections string) (err error) {
	e.loader, e.failedOnes, current = loader, map[uintptr]bool{}, e
	global := libquickjs.XJS_GetGlobalObject(e.tls, e.context)
	defer libquickjs.XFreeValue(e.tls, e.context, global)
	if e.meta, err = e.property(global, meta); err != nil {
		return err
	}
	if e.rejections, err = e.property(global, rejections); err != nil {
		return err
	}
	libquickjs.XJS_SetHostPromiseRejectionTracker(e.tls, e.runtime, pointerTo(noteRejection), 0)
	libquickjs.XJS_SetModuleLoaderFunc2(e.tls, e.runtime, pointerTo(resolveModule), pointerTo(loadModule), 0, 0)
	return nil
}

// property returns a property, which is the caller's to free.
func (e *engine) property(of libquickjs.TJSValue, name string) (v libquickjs.TJSValue, err error) {
	p, err := libc.CString(name)
	if err != nil {
		return v, err
	}
	defer libc.Xfree(e.tls, p)
	v = libquickjs.XJS_GetPropertyStr(e.tls, e.context, of, p)
	if e.failed() {
		return v, fmt.Errorf("look for %s", name)
	}
	return v, nil
}

// failed reports whether the last call has thrown something, and drops it.
func (e *engine) failed() bool {
	if libquickjs.XJS_HasException(e.tls, e.context) == 0 {
		return false
	}
	libquickjs.XFreeValue(e.tls, e.context, libquickjs.XJS_GetException(e.tls, e.context))
	return true
}

// noteRejection is JSHostPromiseRejectionTracker: a promise was rejected while nobody was there to take that, or somebody
// has come since. It runs in the middle of the engine: nothing may run in the isolate now, so it is noted for later.
func noteRejection(_ *libc.TLS, _ uintptr, promise, reason libquickjs.TJSValue, handled int32, _ uintptr) {
	current.note(promise, reason, handled)
}

// What is noted, as the prelude has it.
const (
	noteUnhandled = iota // a promise was rejected
	noteHandled          // somebody has come for one that was
	noteModule           // a module has thrown the reason
)

func (e *engine) note(promise, reason libquickjs.TJSValue, what int32) {
	for _, v := range []libquickjs.TJSValue{
		libquickjs.XDupValue(e.tls, e.context, promise), libquickjs.XDupValue(e.tls, e.context, reason),
		libquickjs.XNewInt32(e.tls, e.context, what),
	} {
		libquickjs.XJS_DefinePropertyValueUint32(e.tls, e.context, e.rejections, e.noted, v, libquickjs.MJS_PROP_C_W_E)
		e.noted++
		e.lost = e.failed() || e.lost
	}
}

// resolveModule is JSModuleNormalizeFunc: it gives a module that another one names its name.
func resolveModule(_ *libc.TLS, context, base, name, _ uintptr) uintptr {
	e := current
	resolved, err := e.loader.resolve(libc.GoString(base), specifierAt(name))
	if err != nil {
		e.throw(err)
		return 0
	}
	p, err := libc.CString(resolved)
	if err != nil {
		return 0
	}
	defer libc.Xfree(e.tls, p)
	return libquickjs.Xjs_strdup(e.tls, context, p) // the engine frees it
}

// specifierAt is what a module names, all of it: as a string of C it would end at a NUL. Such a string is in the middle of one of the
// engine's, which begins with its length, and in the highest bit how wide it is (JS_ToCStringLen2, JS_FreeCString).
func specifierAt(name uintptr) string {
	const header = 12
	n := *(*uint32)(pointerAt(name - header)) &^ (1 << 31)
	return string(unsafe.Slice((*byte)(pointerAt(name)), n))
}

// loadModule is JSModuleLoaderFunc2: it compiles the module of a name, and gives it its import.meta.
func loadModule(_ *libc.TLS, context, name, _ uintptr, attributes libquickjs.TJSValue) uintptr {
	e := current
	text, err := e.loader.load(libc.GoString(name), e.typeOf(attributes))
	if err != nil {
		e.throw(err)
		return 0
	}
	source, err := libc.CString(text)
	if err != nil {
		return 0
	}
	defer libc.Xfree(e.tls, source)
	const flags = libquickjs.MJS_EVAL_TYPE_MODULE | libquickjs.MJS_EVAL_FLAG_COMPILE_ONLY
	v := libquickjs.XJS_Eval(e.tls, context, source, libc.Tsize_t(len(text)), name, flags)
	if libquickjs.XJS_HasException(e.tls, context) != 0 {
		return 0
	}
	module := *(*uintptr)(unsafe.Pointer(&v)) // JS_VALUE_GET_PTR, whatever the representation
	libquickjs.XFreeValue(e.tls, context, v)  // the engine has it in its list
	if !e.describe(module, name, e.loader.file(libc.GoString(name))) {
		return 0
	}
	return module
}

// describe fills import.meta, of a module with a name that is in a file.
func (e *engine) describe(module, name uintptr, file string) bool {
	path, err := libc.CString(file)
	if err != nil {
		return false
	}
	defer libc.Xfree(e.tls, path)
	list := [3]libquickjs.TJSValue{
		libquickjs.XJS_GetImportMeta(e.tls, e.context, module),
		libquickjs.XJS_NewStringLen(e.tls, e.context, name, libc.Xstrlen(e.tls, name)),
		libquickjs.XJS_NewStringLen(e.tls, e.context, path, libc.Tsize_t(len(file))),
	}
	args := libc.Xcalloc(e.tls, 1, libc.Tsize_t(unsafe.Sizeof(list)))
	if args == 0 {
		return false
	}
	defer libc.Xfree(e.tls, args)
	*(*[3]libquickjs.TJSValue)(pointerAt(args)) = list
	v := libquickjs.XJS_Call(e.tls, e.context, e.meta, e.meta, int32(len(list)), args)
	for _, v := range append(list[:], v) {
		libquickjs.XFreeValue(e.tls, e.context, v)
	}
	return libquickjs.XJS_HasException(e.tls, e.context) == 0
}

// typeOf gives the type of import attributes: empty when there is none.
func (e *engine) typeOf(attributes libquickjs.TJSValue) string {
	v, err := e.property(attributes, "type")
	if err != nil {
		return "" // there are no attributes
	}
	defer libquickjs.XFreeValue(e.tls, e.context, v)
	p := libquickjs.XJS_ToCStringLen2(e.tls, e.context, 0, v, 0)
	if e.failed() {
		return ""
	}
	defer libquickjs.XJS_FreeCString(e.tls, e.context, p)
	if s := libc.GoString(p); s != "undefined" {
		return s
	}
	return ""
}

// throw throws an error into the isolate, with the code that node gives it.
func (e *engine) throw(err error) {
	code := ""
	if m := (*moduleError)(nil); errors.As(err, &m) {
		code = m.code
	}
	v := libquickjs.XJS_NewError(e.tls, e.context)
	e.define(v, "message", err.Error())
	if code != "" {
		e.define(v, "code", code)
	}
	libquickjs.XJS_Throw(e.tls, e.context, v)
}

// define gives an error a property. Without memory for it, it has none.
func (e *engine) define(of libquickjs.TJSValue, name, text string) {
	key, err := libc.CString(name)
	if err != nil {
		return
	}
	defer libc.Xfree(e.tls, key)
	value, err := libc.CString(text)
	if err != nil {
		return
	}
	defer libc.Xfree(e.tls, value)
	const hidden = libquickjs.MJS_PROP_CONFIGURABLE | libquickjs.MJS_PROP_WRITABLE
	s := libquickjs.XJS_NewStringLen(e.tls, e.context, value, libc.Tsize_t(len(text)))
	libquickjs.XJS_DefinePropertyValueStr(e.tls, e.context, of, key, s, hidden)
	e.failed()
}

// pointerTo is a function pointer as the engine, which was translated from C, takes one: that of the function's value.
func pointerTo(f any) uintptr {
	return (*[2]uintptr)(unsafe.Pointer(&f))[1]
}

// pointerAt is memory of the engine, which the garbage collector does not move.
func pointerAt(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }
