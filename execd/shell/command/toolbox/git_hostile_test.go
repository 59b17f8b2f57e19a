package toolbox_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/execd/shell"
)

// tryGit runs a script that may fail.
func tryGit(t *testing.T, f treepath.FS, script string) (out string, status int) {
	t.Helper()
	var b bytes.Buffer
	env := append([]string{"PATH=/usr/bin"}, gitEnv[:6]...)
	status, err := shell.Run(t.Context(), shell.Config{
		Tree: f.Tree, Dir: f.Dir, Stdout: &b, Stderr: &b, Commands: table, Env: env, Limits: shell.DefaultLimits(),
	}, script)
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, &b)
	}
	return b.String(), status
}

// rawTree is a shell function that stores a tree of one entry, whatever its name.
const rawTree = `raw() { { printf '%s %s\0' "$1" "$2"; printf "$(echo $3 | sed 's/../\\x&/g')"; } | git hash-object -w -t tree --literally --stdin; }
`

// Trees that name what is outside of the work tree, or the repository itself, are not checked out.
func TestGitHostileNames(t *testing.T) {
	dir := t.TempDir()
	realGit(t, dir, rawTree+`git init -q -b main .; echo a > a; git add .; git commit -qm ok
		blob=$(echo evil | git hash-object -w --stdin); inner=$(raw 100644 config $blob); link=$(printf .git | git hash-object -w --stdin)
		n=0; for name in .. .git .GIT . a/../../b; do
			n=$((n + 1)); git branch evil$n $(git commit-tree -m evil -p HEAD $(raw 40000 $name $inner))
			git branch evilfile$n $(git commit-tree -m evil -p HEAD $(raw 100644 $name $blob))
		done`)
	for n := range 5 {
		for _, kind := range []string{"evil", "evilfile"} {
			branch := kind + string(rune('1'+n))
			for _, how := range []string{"git switch " + branch, "git reset --hard " + branch, "git checkout " + branch + " -- .", "git merge " + branch, "git stash; git restore -s " + branch + " ."} {
				f := treepath.FS{Tree: vfstest.NewTree(), Dir: "/w/r", Umask: 0o022}
				load(t, f, dir, "/w/r")
				if out, status := tryGit(t, f, how); status == 0 {
					t.Errorf("%s: went well:\n%s", how, out)
				}
				out, _ := tryGit(t, f, "cat a; ls -A / /w | grep -v '^[/w]*:*$\\|^tmp\\|^dev'; cat .git/config | grep evil; git status --porcelain; git rev-parse --abbrev-ref HEAD")
				if out != "a\nr\nmain\n" {
					t.Errorf("%s: afterwards:\n%s", how, out)
				}
			}
		}
	}
}

// A tree that cannot be read is not taken for one that ends there: nothing is removed.
func TestGitMissingTree(t *testing.T) {
	dir := t.TempDir()
	realGit(t, dir, `git init -q -b main .; mkdir -p b/c; echo 1 > a; echo 2 > b/c/x; echo 3 > d; git add .; git commit -qm one
		echo 4 > a; git commit -qam two; t=$(git rev-parse HEAD:b/c); rm -f .git/objects/${t:0:2}/${t:2}`)
	for _, how := range []string{"git reset --hard HEAD~1", "git switch -c x HEAD~1", "git stash -q; echo 5 > a; git stash", "git checkout HEAD~1 -- .", "git status"} {
		f := treepath.FS{Tree: vfstest.NewTree(), Dir: "/r", Umask: 0o022}
		load(t, f, dir, "/r")
		out, status := tryGit(t, f, how)
		if status == 0 || !strings.Contains(out, "unable to read tree") {
			t.Errorf("%s: status %d:\n%s", how, status, out)
		}
		if out, _ := tryGit(t, f, "cat b/c/x d"); out != "2\n3\n" {
			t.Errorf("%s: afterwards: %s", how, out)
		}
	}
}

// What we leave in the index lets git see what the work tree has.
func TestGitSeesOurChanges(t *testing.T) {
	for _, script := range []string{
		"git mv a b; two b; git mv b c", "two a; git reset -q HEAD~1", "two a; git mv a d", "two a; git stash -q; git stash pop -q",
		"two a; git restore --staged a; git reset -q --soft HEAD~1; git reset -q",
	} {
		f := treepath.FS{Tree: vfstest.NewTree(), Dir: "/r", Umask: 0o022}
		if err := f.MkdirAll(t.Context(), "/r", 0o777); err != nil {
			t.Fatal(err)
		}
		ourGit(t, f, "two() { printf 'Two\\n' > $1; touch -d 2001-02-03 $1; }; git init -q -b main; printf 'one\\n' > a; git add a; git commit -qm one; "+
			"printf 'two\\n' > a; git commit -qam two; "+script)
		dir := t.TempDir()
		export(t, f, "/r", dir)
		keepTimes(t, f, "/r", dir)
		if out := realGit(t, dir, "git -c core.trustctime=false -c core.checkstat=minimal diff --no-renames | grep ^+"); !strings.Contains(out, "+Two") {
			t.Errorf("%s: git does not see it:\n%s", script, out)
		}
	}
}

// keepTimes gives files that were exported their times, by which git tells whether they were changed, and the index one that
// is later.
func keepTimes(t *testing.T, f treepath.FS, from, to string) {
	t.Helper()
	err := f.Walk(t.Context(), from, func(path string, a vfs.Attr, err error) error {
		if err != nil || a.Type != vfs.TypeRegular {
			return err
		}
		when := a.Mtime.Go()
		if strings.HasSuffix(path, "/.git/index") {
			when = when.Add(time.Hour)
		}
		return os.Chtimes(filepath.Join(to, strings.TrimPrefix(path, from)), when, when)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A stash and a merge of ours are git's, and the other way round.
func TestGitSharesStashAndMerge(t *testing.T) {
	f := treepath.FS{Tree: vfstest.NewTree(), Dir: "/r", Umask: 0o022}
	if err := f.MkdirAll(t.Context(), "/r", 0o777); err != nil {
		t.Fatal(err)
	}
	ourGit(t, f, `git init -q -b main; seq 9 > n; git add n; git commit -qm one; git branch side; echo s >> n; echo u > u; git stash -qu; echo t >> n; git stash -q
		sed -i s/2/two/ n; git commit -qam two; git switch -q side; sed -i s/2/zwei/ n; git commit -qam zwei; git merge main || true; git tag -a v -m v`)
	dir := t.TempDir()
	export(t, f, "/r", dir)
	realGit(t, dir, `git fsck --strict --full 2>&1; test "$(git stash list | wc -l)" = 2; git status | grep 'both modified'; git merge --abort; test -z "$(git status --porcelain)"
		git switch -q main; git reset -q --hard HEAD~1; git stash pop -q stash@{1}; cat u; git stash -q; git switch -q side; git merge main || true; git stash list`)
	back := treepath.FS{Tree: vfstest.NewTree(), Dir: "/r", Umask: 0o022}
	load(t, back, dir, "/r")
	if out := ourGit(t, back, "git stash list | wc -l; git status --porcelain"); !strings.HasPrefix(out, "2\n") {
		t.Error(out)
	}
}

// Names of references lead nowhere else.
func TestGitHostileReferences(t *testing.T) {
	f := treepath.FS{Tree: vfstest.NewTree(), Dir: "/r", Umask: 0o022}
	if err := f.MkdirAll(t.Context(), "/r", 0o777); err != nil {
		t.Fatal(err)
	}
	ourGit(t, f, "git init -q -b main; echo a > a; git add a; git commit -qm one; echo precious > .git/precious; git tag -a t -m t")
	for _, script := range []string{
		"git branch ../../precious", "git tag ../precious", "git update-ref x", "git branch -m main ../../../a", "git remote add ../../x /nowhere", "git branch -D ../../precious",
		"git push . main:refs/../precious", "git fetch . main:refs/heads/../../precious", "git init -b ../x y", "git symbolic-ref HEAD x",
	} {
		if out, status := tryGit(t, f, script); status == 0 {
			t.Errorf("%s: went well:\n%s", script, out)
		}
	}
	if out, _ := tryGit(t, f, "cat .git/precious a; git status --porcelain"); out != "precious\na\n?? y/\n" && out != "precious\na\n" {
		t.Error(out)
	}
	// A branch that leads to a tag is nobody's, and no panic.
	if out, _ := tryGit(t, f, "cat .git/refs/tags/t > .git/refs/heads/main; git log --format=%d; git status; git commit --allow-empty -m x; git branch -v; git merge t"); strings.Contains(out, "internal error") {
		t.Error(out)
	}
}
