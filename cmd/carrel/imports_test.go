package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/carrelfs/carrel"

// imports says which packages of this module one may import, beside itself. What is not
// listed may import nothing of the module. Tests may import the kits besides.
var imports = map[string][]string{
	"casstore/chunk":                   {},
	"casstore/vfs":                     {"casstore/chunk"},
	"casstore/vfs/memtree":             {"casstore/vfs"},
	"casstore/vfs/vfstest":             {"casstore/vfs", "casstore/vfs/memtree", "casstore/vfs/vfstest/seed"},
	"casstore/vfs/vfstest/seed":        {},
	"casstore/vfs/treepath":            {"casstore/vfs"},
	"casstore/vfs/subtree":             {"casstore/vfs"},
	"casstore/pack":                    {"casstore/chunk"},
	"casstore/writebuf":                {"casstore/vfs"},
	"casstore/reconcile":               {"casstore/vfs"},
	"casstore/reconcile/reconciletest": {"casstore/reconcile", "casstore/vfs"},
	"casstore":                         {"casstore/chunk", "casstore/pack", "casstore/reconcile", "casstore/vfs", "casstore/writebuf"},
	"casstore/control":                 {"casstore", "casstore/reconcile", "casstore/vfs"},
	"casstore/lookback":                {"casstore", "casstore/vfs"},
	"fusefs":                           {"casstore/vfs"},
	"syncwire":                         {"casstore/chunk", "casstore/vfs"},
	"syncwire/exclusive":               {"casstore/vfs", "syncwire"},
	"syncwire/wiretest":                {"casstore/chunk", "casstore/vfs"},
	"syncwire/wiretest/badlink":        {},
	"mirror":                           {"casstore", "casstore/chunk", "casstore/reconcile", "casstore/vfs", "mirror/localpath", "syncwire", "syncwire/exclusive"},
	"mirror/localpath":                 {"casstore", "casstore/vfs"},
	"execd":                            {"casstore/reconcile", "casstore/vfs"},
	"cmd":                              {"casstore", "fusefs", "syncwire", "mirror", "execd", "bench"},
	"bench":                            {"casstore", "fusefs", "syncwire", "mirror", "execd"},
	"fuzz":                             {"casstore", "fusefs", "syncwire", "mirror", "execd"},
}

// trees are the entries above that stand for all that is below them, on either side of an import.
var trees = []string{"cmd", "execd", "bench", "fuzz"}

// kits are for tests alone.
var kits = []string{
	"casstore/reconcile/reconciletest", "casstore/vfs/vfstest", "casstore/vfs/vfstest/seed", "syncwire/wiretest", "syncwire/wiretest/badlink",
}

// owners are modules that one folder alone may name.
var owners = map[string]string{
	"github.com/dgraph-io/badger": "casstore",
	"bazil.org/fuse":              "fusefs",
	"github.com/quic-go/quic-go":  "syncwire",
}

// hostless may not ask the host for anything: no files, processes, network or system calls of its own, so that a script
// which runs in the daemon finds no way out of its tree. os is not needed even for error values.
const hostless = "execd/shell"

var hosts = []string{"os", "os/exec", "os/user", "os/signal", "net", "net/http", "syscall", "plugin", "unsafe",
	"golang.org/x/sys", "path/filepath", "io/ioutil"}

// vague are names that say nothing of what is in a folder.
var vague = []string{"util", "utils", "common", "helper", "helpers", "pkg", "internal", "base", "misc", "shared",
	"types"}

type goPackage struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", module+"/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err, cmd)
	}
	var all []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// Imports run one way, as the table says.
func TestImports(t *testing.T) {
	all := listPackages(t)
	if len(all) < 8 {
		t.Fatalf("go list found only %d packages", len(all))
	}
	for _, p := range all {
		from := strings.TrimPrefix(p.ImportPath, module+"/")
		for _, bad := range problems(from, p) {
			t.Errorf("%s: %s", from, bad)
		}
	}
}

func problems(from string, p goPackage) (bad []string) {
	for _, name := range strings.Split(from, "/") {
		if slices.Contains(vague, name) {
			bad = append(bad, "the name "+name+" says nothing of what is in it")
		}
	}
	if _, ok := imports[ruleOf(from)]; !ok {
		return append(bad, "it has no place in the map of folders")
	}
	for _, to := range p.Imports {
		bad = append(bad, check(from, to, false)...)
	}
	for _, to := range slices.Concat(p.TestImports, p.XTestImports) {
		bad = append(bad, check(from, to, true)...)
	}
	return bad
}

func check(from, to string, test bool) []string {
	for owned, owner := range owners {
		if within(to, owned) && from != owner {
			return []string{"it imports " + to + ", which only " + owner + " may"}
		}
	}
	if within(from, hostless) && !test && slices.Contains(hosts, to) {
		return []string{"it imports " + to + ", and the shell has no way to the host"}
	}
	to, ours := strings.CutPrefix(to, module+"/")
	switch {
	case !ours, to == from, test && slices.Contains(kits, to):
		return nil
	case within(to, "cmd") && !within(from, "cmd"):
		return []string{"it imports " + to + ", and nobody imports cmd"}
	case slices.Contains(kits, to) && !slices.Contains(kits, from) && !within(from, "fuzz"):
		return []string{"it imports " + to + " outside of its tests"}
	}
	rule := ruleOf(from)
	if rule == ruleOf(to) && slices.Contains(trees, rule) {
		return nil
	}
	for _, allowed := range imports[rule] {
		if to == allowed || slices.Contains(trees, rule) && within(to, allowed) {
			return nil
		}
	}
	return []string{"it must not import " + to}
}

// ruleOf returns the entry of imports that a folder falls under.
func ruleOf(folder string) string {
	for _, t := range trees {
		if within(folder, t) {
			return t
		}
	}
	return folder
}

func within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

// The rules find what they are for.
func TestImportRules(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		test, ok bool
	}{
		{"casstore/pack", "casstore/chunk", false, true},
		{"casstore/chunk", "casstore/pack", false, false},
		{"casstore/vfs", "casstore", false, false},
		{"fusefs", "casstore/vfs", false, true},
		{"fusefs", "casstore", false, false},
		{"fusefs", "casstore/vfs/vfstest", true, true},
		{"fusefs", "casstore/vfs/vfstest", false, false},
		{"casstore", "syncwire/wiretest", true, true},
		{"mirror", "syncwire/wiretest", false, false},
		{"casstore/control", "casstore", false, true},
		{"casstore", "casstore/control", false, false},
		{"casstore", "cmd/carrel", true, false},
		{"cmd/carrel", "cmd/carrel/daemon", false, true},
		{"cmd/carrel/transfer", "cmd/carrel/token", false, true},
		{"cmd/carrel", "casstore/control", false, true},
		{"fuzz/crash", "casstore", false, true},
		{"execd/shell", "execd/shell/command", false, true},
		{"execd/shell", "casstore/vfs/treepath", false, true},
		{"execd/shell", "casstore/reconcile", false, true},
		{"execd/shell", "casstore", false, false},
	} {
		if bad := check(tt.from, path.Join(module, tt.to), tt.test); (len(bad) == 0) != tt.ok {
			t.Errorf("%s imports %s: %q, want allowed %t", tt.from, tt.to, bad, tt.ok)
		}
	}
	for _, tt := range []struct {
		from, to string
		ok       bool
	}{
		{"casstore", "github.com/dgraph-io/badger/v4", true},
		{"execd/shell/command", "strings", true},
		{"casstore/pack", "github.com/dgraph-io/badger/v4", false},
		{"fusefs", "bazil.org/fuse", true},
		{"cmd/carrel", "bazil.org/fuse/fs", false},
	} {
		if bad := check(tt.from, tt.to, true); (len(bad) == 0) != tt.ok {
			t.Errorf("%s imports %s: %q, want allowed %t", tt.from, tt.to, bad, tt.ok)
		}
	}
	for _, host := range hosts {
		if len(check("execd/shell/command", host, false)) == 0 {
			t.Errorf("the shell may import %s", host)
		}
	}
}
