package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// leastRounds is how often converse goes round at least, however soon the builds are over.
const leastRounds = 60

// converse writes on one side and reads on the other, in turns, until the builds are over. It returns how often something crossed.
func (s *site) converse(over <-chan struct{}) (exchanges int, err error) {
	const script = `
while read -r op a b; do
	case $op in
	cat) cat "$a" ;;
	gone) if test -e "$a"; then echo there; else echo gone; fi ;;
	size) stat -c %s "$a" ;;
	hold) exec 3<"$a"; echo held ;;
	held) cat <&3 ;;
	write) echo "$b" >"$a"; echo written ;;
	append) echo "$b" >>"$a"; echo appended ;;
	move) mv "$a" "$b"; echo moved ;;
	remove) rm "$a"; echo removed ;;
	esac
done`
	w, err := s.hire("talk", script)
	if err != nil {
		return 0, err
	}
	for round := 0; ; round++ {
		select {
		case <-over:
			if round >= leastRounds {
				return exchanges, w.dismiss()
			}
		default:
		}
		n, err := s.round(w, round)
		if exchanges += n; err != nil {
			return exchanges, fmt.Errorf("round %d: %w", round, err)
		}
	}
}

// round has each kind of change cross once, in each direction. Names are used again and again, so that each side has cached what
// was there before, and lengths go up and down.
func (s *site) round(w *worker, round int) (exchanges int, err error) {
	text := fmt.Sprintf("round %d %s", round, strings.Repeat("x", 1+round*7919%9000))
	name, other := fmt.Sprintf("a%d", round%3), fmt.Sprintf("b%d", round%3)
	api, theirs := "/talk/"+name, "/talk/"+other
	for _, cross := range []func() error{
		func() error { return errors.Join(s.put(api, text+"\n"), w.ask("cat "+name, text)) },
		func() error { return w.ask("size "+name, fmt.Sprint(len(text)+1)) },
		func() error {
			return errors.Join(w.ask("hold "+name, "held"), s.writeAt(api, 0, "ROUND"), w.ask("held", "ROUND"+text[5:]))
		},
		func() error { return w.ask("cat "+name, "ROUND"+text[5:]) },
		func() error {
			return errors.Join(w.ask("write "+other+" "+text, "written"), s.has(theirs, "", text+"\n"))
		},
		func() error {
			return errors.Join(w.ask("append "+other+" more", "appended"), s.has(theirs, fmt.Sprintf("%d-", len(text)+1), "more\n"))
		},
		func() error {
			size, err := s.size(theirs)
			if want := uint64(len(text) + 1 + len("more\n")); err == nil && size != want {
				err = fmt.Errorf("through the API, %s has %d bytes, not %d", theirs, size, want)
			}
			return err
		},
		func() error {
			return errors.Join(w.ask("move "+other+" "+name, "moved"), s.has(api, "0-4", "round"), s.hasNot(theirs))
		},
		func() error {
			status, got, err := s.request(http.MethodDelete, api, "", nil)
			if err == nil && status != http.StatusNoContent {
				err = fmt.Errorf("remove %s: %d %s", api, status, got)
			}
			return errors.Join(err, w.ask("gone "+name, "gone"))
		},
		func() error {
			return errors.Join(s.put(theirs, text), w.ask("remove "+other, "removed"), s.hasNot(theirs))
		},
	} {
		if err := cross(); err != nil {
			return exchanges, err
		}
		exchanges++
	}
	return exchanges, nil
}

// cloneAndPush clones a bare repository, finds an edit of the other side, commits and pushes it.
func cloneAndPush(s *site) error {
	dir := s.t.TempDir()
	git := func(args ...string) error {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Env = append(os.Environ(), gitQuiet...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", args, err, out)
		}
		return nil
	}
	err := git("init", "-q", "-b", "main")
	for i := range 20 {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, fmt.Sprint(i%7)), fmt.Appendf(nil, "%d\n", i), 0o644))
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "hello"), fmt.Appendf(nil, "hello %2d\n", i), 0o644))
		err = errors.Join(err, git("add", "-A"), git("commit", "-q", "-m", fmt.Sprint(i)))
	}
	bundle := filepath.Join(s.t.TempDir(), "bundle")
	if err = errors.Join(err, git("bundle", "create", "-q", bundle, "HEAD", "main")); err != nil {
		return err
	}
	packed, err := os.ReadFile(bundle)
	if err != nil {
		return err
	}
	if err := s.put("/git/bundle", string(packed)); err != nil {
		return err
	}
	w, err := s.hire("git", `
git clone -q --bare bundle origin.git
git clone -q -b main "file://$PWD/origin.git" clone
cd clone
git rev-list --count HEAD
while read -r number; do
	git diff --name-only
	git commit -q -a -m "edit $number"
	git push -q origin HEAD:main
	git rev-parse HEAD
done
git -C ../origin.git fsck --strict --full >&2
git fsck --strict --full >&2
test -z "$(git status --porcelain)"`)
	if err != nil {
		return err
	}
	err = errors.Join(w.says("20"), s.has("/git/clone/hello", "", "hello 19\n"))
	for i := range 6 {
		// As long as before, and perhaps in the same moment: git takes it for the same file unless what it knows of it differs.
		err = errors.Join(err, s.put("/git/clone/hello", fmt.Sprintf("hullo %2d\n", i)), w.tell(fmt.Sprint(i)), w.says("hello"))
		head, lineErr := w.line()
		if err = errors.Join(err, lineErr); err != nil {
			return err
		}
		for _, at := range []string{"/git/clone/.git/refs/heads/main", "/git/origin.git/refs/heads/main"} {
			err = errors.Join(err, s.has(at, "", head+"\n"))
		}
	}
	return errors.Join(err, w.dismiss())
}

// installAndTest installs a package that lies beside the project, and tests that, with files that the other side edits.
func installAndTest(s *site) error {
	const greeter = "exports.greet = (name) => 'hello ' + name\n"
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	err := errors.Join(
		addFile(archive, "package/package.json", `{"name": "greeter", "version": "1.0.0", "main": "index.js"}`),
		addFile(archive, "package/index.js", greeter), archive.Close(), zipped.Close(),
		s.put("/npm/vendor/greeter-1.0.0.tgz", packed.String()),
		s.put("/npm/name.json", `"you"`),
		s.put("/npm/package.json", `{
			"name": "project", "version": "1.0.0", "private": true,
			"dependencies": {"greeter": "file:vendor/greeter-1.0.0.tgz"}, "scripts": {"test": "node test.js"}
		}`),
		s.put("/npm/test.js", `
			const said = require('greeter').greet(require('./name.json'))
			require('fs').writeFileSync('result.json', JSON.stringify(said))
			console.log(said)
		`))
	if err != nil {
		return err
	}
	w, err := s.hire("npm", `
export npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false npm_config_offline=true npm_config_cache=/tmp/npm
npm install --loglevel=error >&2
npm test --silent
while read -r again; do npm test --silent; done`)
	if err != nil {
		return err
	}
	return errors.Join(
		w.says("hello you"), s.has("/npm/result.json", "", `"hello you"`), s.has("/npm/node_modules/greeter/index.js", "", greeter),
		s.put("/npm/name.json", `"all"`), w.ask("again", "hello all"), s.has("/npm/result.json", "", `"hello all"`),
		s.put("/npm/node_modules/greeter/index.js", strings.Replace(greeter, "hello", "hullo", 1)), w.ask("again", "hullo all"),
		s.has("/npm/result.json", "", `"hullo all"`), w.dismiss(),
	)
}

func addFile(w *tar.Writer, name, text string) error {
	err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))})
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	return err
}

// testModule tests a module of Go, which passes or fails by what the other side has written last.
func testModule(s *site) error {
	const value, test = "package x\n\nconst Value = %d\n", `package x

import "testing"

func TestValue(t *testing.T) {
	if Value != 42 {
		t.Fatal(Value)
	}
}
`
	files := map[string]string{"go.mod": "module x\n\ngo 1.20\n", "value.go": fmt.Sprintf(value, 42), "value_test.go": test}
	root, cache, err := cacheOfGo(s.t.TempDir(), files)
	if err == nil {
		err = s.put("/go/cache.tar", cache)
	}
	for name, text := range files {
		err = errors.Join(err, s.put("/go/"+name, text))
	}
	if err != nil {
		return err
	}
	w, err := s.hire("go", `
mkdir /tmp/cache && tar -xf cache.tar -C /tmp/cache
export PATH='`+root+`'/bin:$PATH GOCACHE=/tmp/cache CGO_ENABLED=0 GOPROXY=off GOTOOLCHAIN=local GOFLAGS=-mod=mod
while read -r again; do
	if go test -vet=off . >out 2>&1; then echo passes; else echo fails; fi
done`)
	if err != nil {
		return err
	}
	err = w.ask("first", "passes")
	for i := range 2 {
		err = errors.Join(err, s.put("/go/value.go", fmt.Sprintf(value, i)), w.ask("again", "fails"))
		status, out, outErr := s.request(http.MethodGet, "/go/out", "", nil)
		if outErr == nil && !strings.Contains(string(out), fmt.Sprintf("value_test.go:7: %d\n", i)) {
			outErr = fmt.Errorf("go test has failed by itself: %d %s", status, out)
		}
		err = errors.Join(err, outErr, s.put("/go/value.go", fmt.Sprintf(value, 42)), w.ask("again", "passes"))
	}
	return errors.Join(err, w.dismiss())
}

// cacheOfGo returns where Go is, and of this machine's build cache what the standard library is there for a module, as a tar archive:
// to compile that is most of the work of a test of a small module, and tells nothing. Were the cache made otherwise one day, it would
// be compiled again.
func cacheOfGo(dir string, files map[string]string) (root, archive string, err error) {
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return "", "", err
		}
	}
	run := func(args ...string) (string, error) {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOFLAGS=-mod=mod")
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("go %s: %w: %s", args, err, said.String())
		}
		return strings.TrimSpace(string(out)), err
	}
	root, err = run("env", "GOROOT")
	if err != nil {
		return "", "", err
	}
	if !strings.HasPrefix(root, "/usr/") && !strings.HasPrefix(root, "/opt/") {
		return "", "", fmt.Errorf("a container sees Go in /usr and /opt alone, and it is in %s", root)
	}
	cache, err := run("env", "GOCACHE")
	if err != nil {
		return "", "", err
	}
	list, err := run("list", "-deps", "-test", "-export", "-f", "{{if .Standard}}{{.BuildID}} {{.Export}}{{end}}", ".")
	if err != nil {
		return "", "", err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for line := range strings.Lines(list) {
		id, object, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue // unsafe has none
		}
		action, _, _ := strings.Cut(id, "/")
		key, err := base64.RawURLEncoding.DecodeString(action)
		if err != nil || len(key) == 0 {
			return "", "", fmt.Errorf("build id %q: %w", id, err)
		}
		name := hex.EncodeToString(key)
		entries, err := filepath.Glob(filepath.Join(cache, name[:2], name+"*-a"))
		if err != nil {
			return "", "", err
		}
		for _, path := range append(entries, object) {
			text, err := os.ReadFile(path)
			if err == nil {
				path, err = filepath.Rel(cache, path)
			}
			if err == nil {
				err = addFile(w, path, string(text))
			}
			if err != nil {
				return "", "", err
			}
		}
	}
	err = w.Close()
	return root, b.String(), err
}

// compileC builds a program of C in the way of a makefile, again whenever the other side has edited a header.
func compileC(s *site) error {
	err := errors.Join(
		s.put("/c/value.h", "#define VALUE 1\n"),
		s.put("/c/main.c", "#include <stdio.h>\nint value(void);\nint main(void) { return printf(\"%d\\n\", value()) < 0; }\n"),
		s.put("/c/value.c", "#include \"value.h\"\nint value(void) { return VALUE; }\n"),
	)
	if err != nil {
		return err
	}
	w, err := s.hire("c", `
while read -r again; do
	gcc -O1 -c main.c value.c
	ar rc libvalue.a value.o
	gcc -o program main.o -L. -lvalue
	./program
done`)
	if err != nil {
		return err
	}
	err = errors.Join(w.ask("first", "1"), s.has("/c/program", "0-3", "\x7fELF"))
	for i := 2; i < 7 && err == nil; i++ {
		err = errors.Join(s.put("/c/value.h", fmt.Sprintf("#define VALUE %d\n", i)), w.ask("again", fmt.Sprint(i)))
	}
	return errors.Join(err, w.dismiss())
}

// useTools has archivers, a database and a copier take what the other side has made, and gives back what they make.
func useTools(s *site) error {
	w, err := s.hire("tools", `
sqlite3 db 'PRAGMA journal_mode=WAL; CREATE TABLE t(n INT, sum TEXT);' >&2
while read -r n; do
	tar -xf in.tar
	rsync -a --delete tree/ copy/
	sum=$(sort copy/file | sha256sum | cut -d' ' -f1)
	sqlite3 db "INSERT INTO t VALUES($n, '$sum'); PRAGMA wal_checkpoint(TRUNCATE);" >&2
	tar -czf out.tgz copy
	sqlite3 db 'SELECT count(*), max(n) FROM t; PRAGMA integrity_check;' | tr '\n' ' '
	echo $sum
done`)
	if err != nil {
		return err
	}
	for i := range 5 {
		text := strings.Repeat(fmt.Sprintf("line of %d\n", i), 1000*(i+1))
		var packed bytes.Buffer
		archive := tar.NewWriter(&packed)
		err := errors.Join(addFile(archive, "tree/file", text), addFile(archive, fmt.Sprintf("tree/only-%d", i), ""), archive.Close())
		sum := sha256.Sum256([]byte(text))
		err = errors.Join(err, s.put("/tools/in.tar", packed.String()),
			w.ask(fmt.Sprint(i), fmt.Sprintf("%d|%d ok %x", i+1, i, sum)),
			s.has("/tools/copy/file", "", text), s.has("/tools/db", "0-15", "SQLite format 3\x00"), s.unpacks("/tools/out.tgz", "copy/file", text))
		if err != nil {
			return err
		}
	}
	return w.dismiss()
}

// unpacks requires that a file is in a compressed archive.
func (s *site) unpacks(path, name, want string) error {
	_, packed, err := s.request(http.MethodGet, path, "", nil)
	if err != nil {
		return err
	}
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for archive := tar.NewReader(zipped); ; {
		h, err := archive.Next()
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if h.Name != name {
			continue
		}
		got, err := io.ReadAll(archive)
		if err == nil && string(got) != want {
			err = fmt.Errorf("%s: %s is %q, not %q", path, name, short(string(got)), short(want))
		}
		return err
	}
}
