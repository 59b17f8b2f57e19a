package gitremote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/execd/gitremote"
	"github.com/carrelfs/carrel/execd/shell"
	"github.com/carrelfs/carrel/execd/shell/command/toolbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// who commits in these tests, and when.
var who = []string{
	"GIT_AUTHOR_DATE=1700000000 +0000", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_AUTHOR_NAME=Ann",
	"GIT_COMMITTER_DATE=1700000000 +0000", "GIT_COMMITTER_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Ann",
}

// hostGit runs the machine's git.
func hostGit(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.Command("bash", "-ec", script)
	cmd.Dir = dir
	cmd.Env = append([]string{"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME=/none", "PATH=" + os.Getenv("PATH")}, who...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// served makes a repository that is served by HTTP.
func served(t *testing.T) (dir, url string) {
	t.Helper()
	root := t.TempDir()
	hostGit(t, root, `git init -q --bare -b main r.git; git -C r.git config http.receivepack true
		git init -q -b main w; cd w; seq 1000 > n; mkdir d; echo x > d/x; git add .; git commit -qm one; git tag -a v1 -m v1
		echo y > d/y; git add .; git commit -qm two; git branch side HEAD~1; git push -q ../r.git main side v1; cd ..; git -C r.git gc -q; rm -rf w`)
	at := strings.TrimSpace(hostGit(t, root, "git --exec-path"))
	s := httptest.NewServer(&cgi.Handler{
		Path: filepath.Join(at, "git-http-backend"), Dir: root, Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME=/none"},
	})
	t.Cleanup(s.Close)
	return filepath.Join(root, "r.git"), s.URL
}

// allow returns remotes of a list.
func allow(list ...string) *gitremote.Remotes {
	return gitremote.New("the test's list", func() ([]string, error) { return list, nil })
}

// run runs a script in the shell.
func run(t *testing.T, f treepath.FS, remotes *gitremote.Remotes, script string) (out string, status int) {
	t.Helper()
	out, status, err := runUnder(t.Context(), f, remotes, script)
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return out, status
}

func runUnder(ctx context.Context, f treepath.FS, remotes *gitremote.Remotes, script string) (string, int, error) {
	var b bytes.Buffer
	table := toolbox.Table(nil)
	if remotes != nil {
		table = toolbox.Table(remotes)
	}
	status, err := shell.Run(ctx, shell.Config{
		Tree: f.Tree, Dir: "/", Stdout: &b, Stderr: &b, Commands: table, Env: append([]string{"HOME=/", "PATH=/usr/bin"}, who...), Limits: shell.DefaultLimits(),
	}, script)
	return b.String(), status, err
}

func newFS() treepath.FS { return treepath.FS{Tree: vfstest.NewTree(), Dir: "/", Umask: 0o022} }

// Clone, fetch, pull and push go by HTTP to git's own server.
func TestHTTP(t *testing.T) {
	dir, url := served(t)
	f, remotes := newFS(), allow(url+"/r.git")
	must := func(script, want string) {
		t.Helper()
		out, status := run(t, f, remotes, "set -e\n"+script)
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: status %d\n%s\nwant %q", script, status, out, want)
		}
	}
	must("git clone "+url+"/r.git r; cd r; git log --oneline | wc -l; git tag; git branch -r; tail -1 n; git status", "2\nv1\n")
	must("cd r; git fsck 2> /dev/null || true; git ls-remote origin side", "refs/heads/side")
	must("cd r; echo z > z; git add z; git commit -qm three; git push 2>&1", "main -> main")
	if out := hostGit(t, dir, "git log --format=%s -1 main; git fsck --strict --full 2>&1"); !strings.HasPrefix(out, "three\n") {
		t.Error(out)
	}
	hostGit(t, filepath.Dir(dir), "git clone -q r.git w; cd w; echo more >> z; git commit -qam four; git tag light; git push -q origin main light; rm -rf ../w")
	must("cd r; git pull 2>&1", "Fast-forward")
	must("cd r; git tag; git push origin :side 2>&1", "light\nv1\n")
	must("cd r; git push origin HEAD~1:refs/heads/main -f 2>&1", "forced update")
	if out := hostGit(t, dir, "git for-each-ref --format='%(refname)'"); out != "refs/heads/main\nrefs/tags/light\nrefs/tags/v1\n" {
		t.Error(out)
	}
	must("git clone -q --depth 1 "+url+"/r.git shallow; cd shallow; git log --oneline | wc -l; cat .git/shallow | wc -l; git status", "1\n1\n")
	must("cd shallow; echo s > s; git add s; git commit -qm shallow; git push 2>&1", "main -> main")
	if out := hostGit(t, dir, "git log --format=%s -1 main; git fsck --strict --full 2>&1"); !strings.HasPrefix(out, "shallow\n") {
		t.Error(out)
	}
}

// What is not allowed is refused, also when a server sends there.
func TestRefused(t *testing.T) {
	dir, url := served(t)
	sends := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, url+strings.TrimPrefix(r.URL.Path, "/ok")+"?"+r.URL.RawQuery, http.StatusFound)
	}))
	defer sends.Close()
	outside := t.TempDir()
	if err := os.Symlink(dir, filepath.Join(outside, "link.git")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		remotes *gitremote.Remotes
		url     string
		ok      bool
	}{
		{nil, url + "/r.git", false},
		{allow(), url + "/r.git", false},
		{allow("https://example.com/"), url + "/r.git", false},
		{allow(url + "/r"), url + "/r.git", false},
		{allow(url + "/x"), url + "/x/../r.git", false},
		{allow(sends.URL + "/ok"), sends.URL + "/ok/r.git", false},
		{allow(sends.URL+"/ok", url), sends.URL + "/ok/r.git", true},
		{allow(url), url + "/r.git", true},
		{allow("nonsense"), url + "/r.git", false},
		{nil, "file://" + dir, false},
		{allow(url), "file://" + dir, false},
		{allow("file://" + filepath.Dir(dir)), "file://" + dir, true},
		{allow("file://" + outside), "file://" + outside + "/link.git", false},
		{allow("file://"+outside, "file://"+filepath.Dir(dir)), "file://" + outside + "/link.git", true},
		{allow("file://" + filepath.Dir(dir)), dir, false}, // a path is the workspace's
		{allow(url), "ssh://git@example.com/r.git", false},
		{allow(url), "git@example.com:r.git", false},
		{allow(url), "ext::sh -c id", false},
	} {
		f := newFS()
		out, status := run(t, f, tt.remotes, "git clone '"+tt.url+"' r; s=$?; ls; exit $s")
		if (status == 0) != tt.ok || !tt.ok && (status != 128 || strings.Contains(out, "\nr\n")) {
			t.Errorf("%s: status %d\n%s", tt.url, status, out)
		}
	}
}

// A password is nobody's to see.
func TestPasswords(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ann" || password != "secret" {
			t.Errorf("%s, %s", user, password)
		}
		http.Error(w, "no", http.StatusUnauthorized)
	}))
	defer s.Close()
	url := strings.Replace(s.URL, "://", "://ann:secret@", 1)
	for _, remotes := range []*gitremote.Remotes{nil, allow(s.URL)} {
		out, status := run(t, newFS(), remotes, "git clone "+url+"/r; git ls-remote "+url+"/r; git init -q x; cd x; git push "+url+"/r HEAD; git fetch "+url+"/r")
		if status == 0 || strings.Contains(out, "secret") {
			t.Errorf("status %d\n%s", status, out)
		}
	}
}

// line is a packet of git's protocol.
func line(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// A server may send anything: it ends the command, and takes no memory to speak of.
func TestHostileServer(t *testing.T) {
	const hash = "1234567890123456789012345678901234567890"
	refs := line("# service=git-upload-pack\n") + "0000" + line(hash+" HEAD\x00ofs-delta symref=HEAD:refs/heads/main\n") + line(hash+" refs/heads/main\n") + "0000"
	for name, pack := range map[string]string{
		"many objects": "PACK\x00\x00\x00\x02\xff\xff\xff\xff" + strings.Repeat("x", 40),
		"no pack":      "nothing of the kind",
		"nothing":      "",
		"cut off":      "PACK\x00\x00\x00\x02\x00\x00\x00\x01\x95",
		"huge object":  "PACK\x00\x00\x00\x02\x00\x00\x00\x01\xbf\xff\xff\xff\xff\xff\x7f" + strings.Repeat("x", 40),
		"not asked":    "PACK\x00\x00\x00\x02\x00\x00\x00\x00\x02\x9d\x08\x82\x3b\xd8\xa8\xea\xb5\x10\xad\x6a\xc7\x5c\x82\x3c\xfd\x3e\xd3\x1e",
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/info/refs") {
				fmt.Fprint(w, refs)
				return
			}
			fmt.Fprint(w, line("NAK\n")+pack)
		}))
		out, status := run(t, newFS(), allow(s.URL), "git clone "+s.URL+"/r r; s=$?; ls; exit $s")
		if status == 0 || strings.Contains(out, "\nr\n") || strings.Contains(out, "internal error") {
			t.Errorf("%s: status %d\n%s", name, status, out)
		}
		s.Close()
	}
}

// References of a server that would be files elsewhere are left.
func TestHostileReferences(t *testing.T) {
	const hash = "1234567890123456789012345678901234567890"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, line("# service=git-upload-pack\n")+"0000"+line(hash+" refs/heads/../../../x\x00ofs-delta\n")+line(hash+" refs/heads/a\x1b[2J\n")+line(hash+" config\n")+"0000")
	}))
	defer s.Close()
	out, status := run(t, newFS(), allow(s.URL), "git ls-remote "+s.URL+"/r; git init -q r; cd r; git fetch "+s.URL+"/r '+refs/*:refs/*'; cat .git/config .git/x 2>&1")
	if strings.Contains(out, hash) || strings.Contains(out, "\x1b") {
		t.Errorf("status %d\n%q", status, out)
	}
}

// A command that waits for a server ends when it is told to.
func TestCancel(t *testing.T) {
	asked := make(chan struct{}, 1)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-asked
		cancel()
	}()
	if out, _, err := runUnder(ctx, newFS(), allow(s.URL), "git clone "+s.URL+"/r"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v\n%s", err, out)
	}
}
