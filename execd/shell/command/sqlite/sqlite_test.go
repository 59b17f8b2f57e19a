package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	sqlitevfs "github.com/ncruces/go-sqlite3/vfs"
	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/execd/shell/command"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run runs sqlite3 on a tree.
func run(ctx context.Context, fs treepath.FS, meter *command.Meter, in string, args ...string) (status int, out, errs string) {
	var stdout, stderr bytes.Buffer
	p := &command.Process{
		Args: append([]string{"sqlite3"}, args...), Stdin: strings.NewReader(in), Stdout: &stdout, Stderr: &stderr, FS: fs,
		Meter: meter, Now: time.Now,
	}
	status = Table()["sqlite3"](ctx, p)
	return status, stdout.String(), stderr.String()
}

func newFS() treepath.FS { return treepath.FS{Tree: vfstest.NewTree(), Umask: 0o022} }

func TestComplete(t *testing.T) {
	for _, tt := range []struct {
		text string
		want bool
	}{
		{"select 1;", true}, {"select 1", false}, {"select ';'", false}, {"select ';';", true}, {"select 1; -- more", true},
		{"select 1; /* ; */", true}, {"select 1 /* ;", false}, {"select 1 -- ;", false}, {`select "a;b`, false}, {"select [;];", true},
		{"create trigger t after insert on u begin select 1;", false},
		{"create trigger t after insert on u begin select 1; end;", true},
		{"create temp trigger t after insert on u begin select 1; end;", true},
		{"explain create trigger t after insert on u begin select case when 1 then 2 end; end;", true},
		{"create table t(a); select 1;", true}, {"create table t(a); select 1", false}, {"", false}, {";", true},
	} {
		if got := complete(tt.text); got != tt.want {
			t.Errorf("%q: %v", tt.text, got)
		}
	}
}

func TestWildcards(t *testing.T) {
	like, glob := wildcards{any: '%', one: '_', fold: true, escape: '\\'}, wildcards{any: '*', one: '?', sets: true}
	for _, tt := range []struct {
		w             wildcards
		pattern, text string
		want          bool
	}{
		{like, "a%c", "aXYc", true}, {like, "A_C", "abc", true}, {like, "%b", "abab", true}, {like, "%ab%", "xxabxx", true},
		{like, "a", "ab", false}, {like, "", "", true}, {like, "%", "", true}, {like, "_", "", false}, {like, `a\%`, "a%", true},
		{like, `a\%`, "ab", false}, {like, "Ä", "ä", false}, {like, "_", "ä", true}, {like, "%%%a", "bba", true},
		{glob, "a*", "abc", true}, {glob, "A*", "abc", false}, {glob, "[a-c]x", "bx", true}, {glob, "[^a-c]x", "bx", false},
		{glob, "[]]", "]", true}, {glob, "[a", "a", false}, {glob, "?[x-]", "q-", true},
	} {
		got, err := tt.w.match(tt.pattern, tt.text, func() error { return nil })
		if err != nil || got != tt.want {
			t.Errorf("%q, %q: %v, %v", tt.pattern, tt.text, got, err)
		}
	}
}

func TestQuote(t *testing.T) {
	for _, tt := range []struct {
		v    value
		want string
	}{
		{value{kind: sqlite3.FLOAT, real: 1e100}, "1.0e+100"}, {value{kind: sqlite3.FLOAT, real: 0.1}, "0.1"},
		{value{kind: sqlite3.FLOAT, real: 1e15}, "1000000000000000.0"}, {value{kind: sqlite3.FLOAT, real: 1.5e-7}, "1.5e-07"},
		{value{kind: sqlite3.FLOAT, real: math.Inf(-1)}, "-1e999"}, {value{kind: sqlite3.BLOB, text: "a\x00"}, "X'6100'"},
		{text("it's"), "'it''s'"}, {text("a\nb"), `replace('a\nb','\n',char(10))`},
		{text("a\r\nb"), `replace(replace('a\r\nb','\r',char(13)),'\n',char(10))`},
		{text("a\\n\nb"), `replace('a\n\012b','\012',char(10))`}, {value{kind: sqlite3.NULL}, "NULL"},
	} {
		if got := quotedLine(tt.v); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.v, got, tt.want)
		}
	}
	for name, want := range map[string]string{"a": "a", "select": `"select"`, "a b": `"a b"`, "1a": `"1a"`, `a"b`: `"a""b"`, "": `""`} {
		if got := quoteName(name); got != want {
			t.Errorf("%q: %s", name, got)
		}
	}
}

func TestDotWords(t *testing.T) {
	for line, want := range map[string][]string{
		"tables": {"tables"}, " mode  csv ": {"mode", "csv"}, `print 'a b' "c\td"`: {"print", "a b", "c\td"},
		`separator "\001" ';'`: {"separator", "\x01", ";"}, `x "a`: {"x", "a"}, "": nil,
	} {
		if got := dotWords(line); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q", line, got)
		}
	}
}

func BenchmarkStart(b *testing.B) {
	fs := treepath.FS{Tree: vfstest.NewTree(), Umask: 0o022}
	for b.Loop() {
		if status, out, _ := run(b.Context(), fs, nil, "", ":memory:", "select 1"); status != 0 || out != "1\n" {
			b.Fatal(status, out)
		}
	}
}

// No name that a script can say leads to another VFS.
func TestHostFiles(t *testing.T) {
	host := sqlitevfs.Find("os")
	if host == nil {
		t.Fatal("the VFS that is not to be reached is not there")
	}
	dir := t.TempDir()
	secret := dir + "/secret.db"
	conn, err := sqlite3.Open("file:" + secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(conn.Exec("create table xyzzy(a)"), conn.Close()); err != nil {
		t.Fatal(err)
	}
	uri := "file:" + secret + "?vfs=os"
	for _, args := range [][]string{
		{uri, ".tables"}, {"a.db", "attach '" + uri + "' as x", ".tables"}, {"a.db", "attach 'file:' || '" + secret + "?vfs=os' as x", ".tables"},
		{"a.db", ".open '" + uri + "'", ".tables"}, {"a.db", "attach 'file:" + secret + "?%76fs=os' as x", ".tables"},
		{"a.db", "attach 'file:" + secret + "?mode=rw&vfs=os' as x", ".tables"}, {"a.db", ".restore '" + uri + "'", ".tables"},
		{"a.db", "create table t(a)", "vacuum into 'file:" + dir + "/made.db?vfs=os'"}, {"a.db", "create table t(a)", ".backup 'file:" + dir + "/made.db?vfs=os'"},
		{"a.db", "/* */ attach\n(select 'file:" + secret + "?vfs=os') as x", ".tables"}, {"-cmd", ".read " + secret, "a.db", ".tables"},
		{"a.db", "vacuum; attach 'file:" + secret + "'||'?vfs=os' as x", ".tables"}, {secret, ".tables"}, {"file:" + secret, ".tables"},
		{"a.db", "select readfile('" + secret + "')"},
	} {
		_, out, errs := run(t.Context(), newFS(), nil, "", args...)
		if strings.Contains(out+errs, "xyzzy") {
			t.Errorf("%q: %q, %q", args, out, errs)
		}
	}
	made, err := sqlite3.Open("file:" + dir + "/made.db?mode=ro")
	if err == nil {
		made.Close()
		t.Error("a file of the host's was made")
	}
}

// What never ends, and what would take long in one step of SQLite's, ends with the context.
func TestCancel(t *testing.T) {
	for _, sql := range []string{
		"with recursive n(i) as (select 1 union all select i+1 from n) select count(*) from n",
		"with recursive n(i) as (select 1 union all select i+1 from n) select i from n",
		"with recursive n(i) as (select 1 union all select i+1 from n limit 100000000) select i from n order by i desc",
		"with a(x) as (select printf('%.*c', 2000000, 'a')) select x like '%' || substr(x, 1, 40000) || 'b' from a",
		"with a(x) as (select printf('%.*c', 2000000, 'a')) select x glob '*' || substr(x, 1, 40000) || 'b' from a",
		"create table t(a); with recursive n(i) as (select 1 union all select i+1 from n) insert into t select i from n",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			time.Sleep(30 * time.Millisecond)
			cancel()
		}()
		ended := make(chan int)
		go func() {
			status, _, _ := run(ctx, newFS(), nil, "", ":memory:", sql)
			ended <- status
		}()
		<-ctx.Done()
		at := time.Now()
		if status := <-ended; status != command.StatusInterrupted {
			t.Errorf("%s: status %d", sql, status)
		}
		if took := time.Since(at); took > 5*time.Second { // 50 ms on a machine that has time for it
			t.Errorf("%s: ended after %v", sql, took)
		}
	}
}

// Memory is bounded: that of SQLite's own by itself, that of its files by the script's.
func TestMemory(t *testing.T) {
	grow := "create table t(a); with recursive n(i) as (select 1 union all select i+1 from n) insert into t select zeroblob(1000000) from n"
	var over error
	meter := command.NewMeter(0, maxHeap+8<<20, 0, func(err error) { over = err })
	if status, _, _ := run(t.Context(), newFS(), meter, "", ":memory:", grow); status == 0 || !errors.Is(over, command.ErrMemory) {
		t.Errorf("status %d, %v", status, over)
	}
	status, out, errs := run(t.Context(), newFS(), nil, "select 1;\nselect length(group_concat(printf('%.*c', 7000000, 'a'))) from (values(1),(2),(3));\n", ":memory:")
	if status != 1 || out != "1\n" || errs == "" {
		t.Errorf("%d, %q, %q", status, out, errs)
	}
}

// One writes at a time, and a reader keeps it from writing.
func TestLocks(t *testing.T) {
	fs := newFS()
	l := lockOf(fs.Tree, 7)
	defer l.release()
	var a, b, c held
	for i, step := range []struct {
		h     *held
		level sqlitevfs.LockLevel
		busy  bool
	}{
		{&a, sqlitevfs.LOCK_SHARED, false}, {&b, sqlitevfs.LOCK_SHARED, false}, {&a, sqlitevfs.LOCK_RESERVED, false},
		{&b, sqlitevfs.LOCK_RESERVED, true}, {&a, sqlitevfs.LOCK_EXCLUSIVE, true}, {&c, sqlitevfs.LOCK_SHARED, true},
	} {
		if err := l.lock(step.h, step.level); errors.Is(err, sqlite3.BUSY) != step.busy || err != nil != step.busy {
			t.Errorf("step %d: %v", i, err)
		}
	}
	l.unlock(&b, sqlitevfs.LOCK_NONE)
	if err := l.lock(&a, sqlitevfs.LOCK_EXCLUSIVE); err != nil || !l.isReserved() {
		t.Error(err)
	}
	l.unlock(&a, sqlitevfs.LOCK_NONE)
	if *l != (locks{key: l.key, users: 1}) {
		t.Errorf("%+v", *l)
	}
}

// A database that was left in the middle of a transaction is as it was before.
func TestRollBack(t *testing.T) {
	fs := newFS()
	if status, _, errs := run(t.Context(), fs, nil, "", "a.db", "create table t(a); insert into t values(1)"); status != 0 {
		t.Fatal(errs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	in, feed := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p := &command.Process{Args: []string{"sqlite3", "a.db"}, Stdin: in, Stdout: io.Discard, Stderr: io.Discard, FS: fs, Now: time.Now}
		Table()["sqlite3"](ctx, p)
	}()
	fmt.Fprintln(feed, "pragma cache_size=1; begin; insert into t select 2;")
	fmt.Fprintln(feed, "with recursive n(i) as (select 1 union all select i+1 from n limit 5000) insert into t select hex(randomblob(200)) from n;")
	cancel()
	feed.Close()
	<-ended
	if _, out, errs := run(t.Context(), fs, nil, "", "a.db", "select count(*) from t; pragma integrity_check"); out != "1\nok\n" {
		t.Errorf("%q, %q", out, errs)
	}
}
