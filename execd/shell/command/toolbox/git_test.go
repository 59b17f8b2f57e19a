package toolbox_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/execd/shell"
)

// gitEnv is who commits in these tests, and when.
var gitEnv = []string{
	"GIT_AUTHOR_DATE=1700000000 +0000", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_AUTHOR_NAME=Ann",
	"GIT_COMMITTER_DATE=1700000000 +0000", "GIT_COMMITTER_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Ann",
	"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME=/none", "PATH=" + os.Getenv("PATH"),
}

// realGit runs the machine's git.
func realGit(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.Command("bash", "-ec", script)
	cmd.Dir, cmd.Env = dir, gitEnv
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// ourGit runs a script in the shell.
func ourGit(t *testing.T, f treepath.FS, script string) string {
	t.Helper()
	var out bytes.Buffer
	env := append([]string{"PATH=/usr/bin"}, gitEnv[:6]...)
	status, err := shell.Run(t.Context(), shell.Config{Tree: f.Tree, Dir: f.Dir, Stdout: &out, Stderr: &out, Commands: table, Env: env}, "set -e\n"+script)
	if err != nil || status != 0 {
		t.Fatalf("%s: status %d, %v\n%s", script, status, err, &out)
	}
	return out.String()
}

// What we make is a repository to git, down to the last object, and its work tree is clean.
func TestGitReadsOurs(t *testing.T) {
	f := treepath.FS{Tree: vfstest.NewTree(), Dir: "/r", Umask: 0o022}
	if err := f.MkdirAll(t.Context(), "/r", 0o777); err != nil {
		t.Fatal(err)
	}
	ourGit(t, f, `git init -q -b main
		mkdir -p a/b a.d a-d; for i in a/b/1 a/2 a.d/3 a-d/4 a0 'sp ace' 'ü'; do echo $i > "$i"; done
		echo run > run; chmod +x run; ln -s a/2 link; : > empty
		git add .; git commit -qm first; git tag -a v1 -m one
		git switch -q -c side; git mv a z; git rm -q a0; git commit -qm moved; git switch -q main; git merge -q side
		git commit -q --amend -m amended; git branch other v1; git config user.name "Some One"`)
	dir := t.TempDir()
	export(t, f, "/r", dir)
	realGit(t, dir, "git fsck --strict --full 2>&1")
	if s := realGit(t, dir, "git status --porcelain"); s != "" {
		t.Errorf("git finds changes:\n%s", s)
	}
	for _, same := range []string{"git log --stat", "git show v1", "git ls-files -s", "git diff HEAD~1 HEAD", "git branch -v", "git config user.name"} {
		if want, got := realGit(t, dir, same), ourGit(t, f, same); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", same, got, want)
		}
	}
}

// What git makes, packs and packed references included, is a repository to us.
func TestGitOfOthersIsRead(t *testing.T) {
	dir := t.TempDir()
	realGit(t, dir, `git init -q -b main .
		for i in 1 2 3 4 5; do seq $((i * 100)) > big; mkdir -p d; echo $i > d/$i; git add .; git commit -qm "c$i"; done
		git tag -a v1 -m one; git switch -q -c side HEAD~2; echo s > s; git add .; git commit -qm side; git switch -q main
		git merge -q --no-edit side; git gc -q; echo after > after; git add after; git commit -qm after`)
	f := treepath.FS{Tree: vfstest.NewTree(), Dir: "/r", Umask: 0o022}
	load(t, f, dir, "/r")
	for _, same := range []string{
		"git status --porcelain", "git log", "git log --oneline -p --no-merges", "git show v1 --stat", "git ls-files -s", "git branch -v",
		"git tag", "git rev-parse HEAD~2^{commit}", "git diff side main --stat",
	} {
		if want, got := realGit(t, dir, same), ourGit(t, f, same); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", same, got, want)
		}
	}
	ourGit(t, f, "git switch -q side; cat s; git switch -q main; git status --porcelain; git commit -q --allow-empty -m ours")
	back := t.TempDir()
	export(t, f, "/r", back)
	realGit(t, back, "git fsck --strict --full 2>&1; test -z \"$(git status --porcelain)\"")
}

// export copies a directory of a tree to the machine.
func export(t *testing.T, f treepath.FS, from, to string) {
	t.Helper()
	err := f.Walk(t.Context(), from, func(path string, a vfs.Attr, err error) error {
		if err != nil {
			return err
		}
		name := filepath.Join(to, strings.TrimPrefix(path, from))
		switch a.Type {
		case vfs.TypeDir:
			return os.MkdirAll(name, 0o777)
		case vfs.TypeSymlink:
			target, err := f.Readlink(t.Context(), path)
			if err != nil {
				return err
			}
			return os.Symlink(target, name)
		}
		data, err := f.ReadFile(t.Context(), path, 1<<20)
		if err != nil {
			return err
		}
		return os.WriteFile(name, data, fs.FileMode(a.Mode&0o777))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// load copies a directory of the machine into a tree.
func load(t *testing.T, f treepath.FS, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := to + strings.TrimPrefix(path, from)
		if d.IsDir() {
			return f.MkdirAll(t.Context(), name, 0o777)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return f.WriteFile(t.Context(), name, data, 0o666)
	})
	if err != nil {
		t.Fatal(err)
	}
}
