package fuzz

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// bench is a mount in which real programs work.
type bench struct {
	*daemon
	outside string // a directory that is not in the mount
}

func newBench(t testing.TB) *bench {
	return &bench{daemon: serve(t, tempDir(t), tempDir(t)), outside: tempDir(t)}
}

// sameAfterRemount copies everything out, checks store and tree, mounts again with cold caches, and compares.
func (b *bench) sameAfterRemount() {
	b.t.Helper()
	before := b.run("", fingerprinter, ".")
	b.daemon = b.verify()
	if after := b.run("", fingerprinter, "."); after != before {
		b.t.Errorf("after the second mount things differ:\n%s", differing(before, after))
	}
}

// differing returns the lines that only one of two texts has.
func differing(a, b string) string {
	var out strings.Builder
	lines := make(map[string]int)
	for line := range strings.Lines(a) {
		lines[line]++
	}
	for line := range strings.Lines(b) {
		if lines[line] == 0 {
			out.WriteString("+ " + line)
		}
		lines[line]--
	}
	for line, n := range lines {
		if n > 0 {
			out.WriteString("- " + line)
		}
	}
	return tail(out.String())
}

// local runs a program outside the mount.
func (b *bench) local(dir string, argv ...string) string {
	b.t.Helper()
	cmd := exec.Command(program(b.t, argv[0]), argv[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, tail(string(out)))
	}
	return string(out)
}

// gitEnv makes git independent of who runs it.
var gitEnv = []string{
	"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=C", "GIT_COMMITTER_EMAIL=c@example.com",
	"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
}

func (b *bench) git(dir string, args ...string) string {
	b.t.Helper()
	return b.startProgram(dir, gitEnv, append([]string{"git"}, args...)...).finish()
}

// TestGit clones a repository of 1,000 commits into the mount, adds 300, packs, and has git check everything.
func TestGit(t *testing.T) {
	const old, added = 1000, 300
	b := newBench(t)
	origin := filepath.Join(b.outside, "origin")
	makeRepository(t, origin, old)
	start := time.Now()
	b.git("", "clone", "--no-hardlinks", origin, "clone")
	t.Logf("clone: %v", time.Since(start))
	start = time.Now()
	commit := fmt.Sprintf(`set -e
for i in $(seq %d); do
	echo "line $i" >>file-$((i %% 40)).txt
	mkdir -p dir-$((i %% 10)) && echo "$i" >dir-$((i %% 10))/new-$i
	git add -A
	git commit -q -m "commit $i"
done`, added)
	b.startProgram("clone", gitEnv, "sh", "-c", commit).finish()
	t.Logf("%d commits: %v", added, time.Since(start))
	b.git("clone", "branch", "side", "HEAD~50")
	b.git("clone", "checkout", "-q", "side")
	b.git("clone", "checkout", "-q", "-")
	b.git("clone", "gc", "-q")
	b.git("clone", "fsck", "--strict", "--full")
	if n := strings.TrimSpace(b.git("clone", "rev-list", "--count", "HEAD")); n != fmt.Sprint(old+added) {
		t.Errorf("%s commits, not %d", n, old+added)
	}
	if s := b.git("clone", "status", "--porcelain"); s != "" {
		t.Errorf("git status: %s", s)
	}
	b.sameAfterRemount()
	b.git("clone", "fsck", "--strict", "--full")
	if s := b.git("clone", "status", "--porcelain"); s != "" {
		t.Errorf("git status after the second mount: %s", s)
	}
	b.git("", "clone", "-q", "clone", filepath.Join(b.outside, "back"))
	if got := strings.TrimSpace(b.local(filepath.Join(b.outside, "back"), "git", "rev-list", "--count", "HEAD")); got != fmt.Sprint(old+added) {
		t.Errorf("cloned back: %s commits", got)
	}
}

// makeRepository makes a repository of many commits by git fast-import.
func makeRepository(t testing.TB, dir string, commits int) {
	t.Helper()
	var in bytes.Buffer
	for i := range commits {
		message := fmt.Sprintf("commit %d", i)
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter A <a@example.com> %d +0000\ndata %d\n%s\n", 1e9+i, len(message), message)
		for k := range 3 {
			noise := make([]byte, 300+(i*k)%5000)
			fill(noise, uint64(i*3+k), 0)
			text := fmt.Sprintf("%x\n", noise)
			fmt.Fprintf(&in, "M 100644 inline src/%d/file-%d.txt\ndata %d\n%s\n", (i+k)%20, (i*k)%50, len(text), text)
		}
	}
	in.WriteString("done\n")
	for _, args := range [][]string{
		{"init", "-q", "-b", "main", dir}, {"-C", dir, "fast-import", "--quiet", "--done"}, {"-C", dir, "reset", "-q", "--hard"},
	} {
		cmd := exec.Command(program(t, "git"), args...)
		cmd.Env = append(os.Environ(), gitEnv...)
		if slices.Contains(args, "fast-import") {
			cmd.Stdin = &in
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, tail(string(out)))
		}
	}
}

// manifestOfNpm is a project that needs some hundred packages, with versions that are fixed at the first level.
const manifestOfNpm = `{
	"name": "torture", "version": "1.0.0", "private": true,
	"dependencies": {
		"eslint": "8.57.0", "webpack": "5.91.0", "webpack-cli": "5.1.4", "typescript": "5.4.5", "mocha": "10.4.0",
		"prettier": "3.2.5", "rimraf": "5.0.5"
	}
}
`

// TestNpm installs a project of several hundred packages in the mount, and runs some of its programs.
func TestNpm(t *testing.T) {
	const least = 200
	b := newBench(t)
	program(t, "node")
	if err := os.WriteFile(filepath.Join(b.outside, "package.json"), []byte(manifestOfNpm), 0o644); err != nil {
		t.Fatal(err)
	}
	b.do("", "cp", filepath.Join(b.outside, "package.json"), ".")
	start := time.Now()
	env := []string{
		"npm_config_cache=" + b.dir + "/.npm", "npm_config_update_notifier=false", "npm_config_fund=false",
		"npm_config_fetch_retries=5", // of what a registry does not answer
	}
	b.startProgram("", env, "npm", "install", "--no-audit").finish()
	t.Logf("npm install: %v", time.Since(start))
	packages := strings.Count(b.do("", "find", "node_modules", "-name", "package.json", "-path", "*node_modules/*/package.json",
		"-not", "-path", "*/test/*"), "\n")
	if packages < least {
		t.Errorf("only %d packages", packages)
	}
	b.sameAfterRemount()
	b.runInstalled()
	b.do("", "rm", "-rf", "node_modules")
	b.startProgram("", env, "npm", "ci", "--no-audit", "--prefer-offline").finish()
	b.runInstalled()
	b.verify()
}

// runInstalled runs programs that npm has installed.
func (b *bench) runInstalled() {
	b.t.Helper()
	script := `set -e
export PATH="$PWD/node_modules/.bin:$PATH"
mkdir -p src
echo 'export const answer: number = 6 * 7;' >src/index.ts
echo 'console.log(answer);' >>src/index.ts
tsc --skipLibCheck --outDir out --module commonjs src/index.ts
webpack --mode production --entry ./out/index.js --output-path "$PWD/dist" >/dev/null
test "$(node dist/main.js)" = 42
prettier --check src/index.ts
eslint --version
echo 'it("works", () => {});' >src/test.js
mocha src/test.js
rm -rf src out dist`
	b.startProgram("", nil, "sh", "-c", script).finish()
}
