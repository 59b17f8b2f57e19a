package worker

import (
	"errors"
	"strings"
	"testing"

	"modernc.org/quickjs"
)

// What a module names is a path in the workspace, as a URL has it, or of node; nothing leads elsewhere.
func TestResolve(t *testing.T) {
	m := &modules{job: &Job{}, places: map[string]string{}, builtins: map[string][]string{"fs": nil, "fs/promises": nil}}
	for _, tt := range []struct{ base, specifier, want, code string }{
		{"/a/b.mjs", "./c.mjs", "/a/c.mjs", ""},
		{"/a/b.mjs", "../c.mjs", "/c.mjs", ""},
		{"/a/b.mjs", "../../../c.mjs", "/c.mjs", ""},
		{"/a/b.mjs", ".", "/a", ""},
		{"/a/b.mjs", "..", "/", ""},
		{"/a/b.mjs", "/c//d/../e.mjs", "/c/e.mjs", ""},
		{"/a/b.mjs", "file:///c.mjs", "/c.mjs", ""},
		{"/a/b.mjs", "file:///c%20d.mjs", "/c d.mjs", ""},
		{"/a/b.mjs", "./100%.mjs", "/a/100%.mjs", ""},
		{"/a/b.mjs", "./c.mjs?v=1#x", "/a/c.mjs?v=1#x", ""},
		{"/a/c.mjs?v=1#x", "./d.mjs", "/a/d.mjs", ""},
		{"/a/b.mjs", "fs", "node:fs", ""},
		{"/a/b.mjs", "node:fs/promises", "node:fs/promises", ""},
		{"<eval>", "./x.mjs", "/x.mjs", ""},
		{"/a/b.mjs", "node:net", "", codeNoBuiltin},
		{"/a/b.mjs", "lodash", "", codeNotFound},
		{"/a/b.mjs", "@a/b", "", codeNotFound},
		{"/a/b.mjs", "", "", codeNotFound},
		{"/a/b.mjs", "file://host/c.mjs", "", codeNotFound},
		{"/a/b.mjs", "https://host/c.mjs", "", codeScheme},
		{"/a/b.mjs", "data:text/javascript,1", "", codeScheme},
		{"/a/b.mjs", "./c%2Fd.mjs", "", codeSpecifier},
		{"/a/b.mjs", "./c%00d.mjs", "", codeSpecifier},
	} {
		got, err := m.resolve(tt.base, tt.specifier)
		code := ""
		if e := (*moduleError)(nil); errors.As(err, &e) {
			code = e.code
		}
		if got != tt.want || code != tt.code {
			t.Errorf("%q from %s: %q, %v, want %q, %s", tt.specifier, tt.base, got, err, tt.want, tt.code)
		}
	}
	if got := m.file("/a/c.mjs?v=1#x"); got != "/a/c.mjs" {
		t.Errorf("%q", got)
	}
}

// The wrapper of the engine keeps it where it is looked for.
func TestEngineOf(t *testing.T) {
	vm, err := quickjs.NewVM()
	if err != nil {
		t.Fatal(err)
	}
	e, err := engineOf(vm)
	if err != nil || e.tls == nil || e.runtime == 0 || e.context == 0 {
		t.Errorf("%+v, %v", e, err)
	}
	if err := vm.Close(); err != nil {
		t.Error(err)
	}
}

// Every file of the prelude is in its order, once.
func TestPrelude(t *testing.T) {
	entries, err := preludeFiles.ReadDir("prelude")
	if err != nil || len(entries) != len(preludeOrder) {
		t.Errorf("%d files, %d in the order, %v", len(entries), len(preludeOrder), err)
	}
	if all := prelude(); !strings.HasPrefix(all, "(() => {") || !strings.Contains(all, "__entries") {
		t.Errorf("%.100s", all)
	}
}
