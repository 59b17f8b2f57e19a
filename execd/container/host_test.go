package container

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/container/launch"
	"github.com/carrelfs/carrel/execd/image"
)

// smallRoot is a root filesystem with nothing but a shell.
func smallRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	sh, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := exec.Command("ldd", sh).Output()
	if err != nil {
		t.Fatal(err)
	}
	copyTo(t, sh, filepath.Join(root, "bin/sh"))
	for _, m := range regexp.MustCompile(`(/\S+)`).FindAllSubmatch(libraries, -1) {
		copyTo(t, string(m[1]), filepath.Join(root, string(m[1])))
	}
	if err := os.Symlink("bin", filepath.Join(root, "sbin")); err != nil {
		t.Fatal(err)
	}
	return root
}

func copyTo(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, b, 0o755)); err != nil {
		t.Fatal(err)
	}
}

// A container has the programs of its root directory and no others, and cannot change them.
func TestRootDirectory(t *testing.T) {
	d := newDesk(t, func(c *Config) { c.Host = true })
	root := smallRoot(t)
	script := `echo "$PWD"; [ -e /usr/bin/env ] && echo BREAK; echo x > /bin/x; echo x > /x; echo in > made; exec /sbin/sh -c 'exit 6'`
	p, out := d.start(t, execd.Spec{Args: []string{"sh", "-c", script}, Root: root})
	if x := p.Wait(); x.Code != 6 || out.text(execd.Stdout) != "/workspace\n" {
		t.Errorf("%+v, %q, %q", x, out.text(execd.Stdout), out.text(execd.Stderr))
	}
	if b, err := os.ReadFile(filepath.Join(d.dir, "ws/made")); err != nil || !bytes.Equal(b, []byte("in\n")) {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(root, "bin/x")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	job := execd.Job{Spec: execd.Spec{Workspace: "ws", Args: []string{"true"}, Root: "/no/such"}}
	if _, err := d.Start(t.Context(), job, newLog()); !errors.Is(err, os.ErrNotExist) && !errors.Is(err, vfs.ErrNotExist) {
		t.Errorf("no such root: %v", err)
	}
}

// savedImage makes a tarball of a root directory, as docker save writes it.
func savedImage(t *testing.T, root string) string {
	t.Helper()
	var layer, saved bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := errors.Join(w.AddFS(os.DirFS(root)), w.Close()); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`{"os":"linux","architecture":%q,"config":{"Env":["OF=image","ALSO=image"]},"rootfs":{"diff_ids":["sha256:%x"]}}`,
		runtime.GOARCH, sha256.Sum256(layer.Bytes()))
	w = tar.NewWriter(&saved)
	for name, b := range map[string][]byte{
		"manifest.json": []byte(`[{"Config":"config","Layers":["layer"]}]`), "config": []byte(config), "layer": layer.Bytes(),
	} {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(b)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := errors.Join(w.Close(), os.WriteFile(path, saved.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
	return path
}

// A container has the programs and the environment of an image, and shares them with others of it.
func TestImage(t *testing.T) {
	images := image.Open(image.Config{Dir: filepath.Join(t.TempDir(), "images")})
	t.Cleanup(func() {
		if err := images.Close(); err != nil {
			t.Error(err)
		}
	})
	d := newDesk(t, func(c *Config) { c.Host, c.Images = true, images })
	s := execd.Spec{
		Args: []string{"sh", "-c", `echo "$OF $ALSO"; echo x > /bin/x || [ -e /usr/bin/env ] || exit 6`},
		Root: savedImage(t, smallRoot(t)), Env: []string{"ALSO=spec"},
	}
	p, out := d.start(t, s)
	if x := p.Wait(); x.Code != 6 || out.text(execd.Stdout) != "image spec\n" {
		t.Errorf("%+v, %q, %q", x, out.text(execd.Stdout), out.text(execd.Stderr))
	}
	for _, args := range [][]string{{"no-such-program"}, {"/no/such"}} { // in a container that there is, as in the first exec of one
		job := execd.Job{Spec: execd.Spec{Workspace: "ws", Args: args, Root: s.Root}}
		if _, err := d.Start(t.Context(), job, newLog()); !errors.Is(err, execd.ErrNoProgram) {
			t.Errorf("%q: %v", args, err)
		}
		job.Workspace = args[0][1:2] + "-other"
		if _, err := d.Start(t.Context(), job, newLog()); !errors.Is(err, execd.ErrNoProgram) {
			t.Errorf("%q, the first of a container: %v", args, err)
		}
	}
	again, _ := d.start(t, s)
	if again.Wait(); again.(*process).cell != p.(*process).cell {
		t.Error("an image has two roots")
	}
	bad := filepath.Join(t.TempDir(), "bad.tar")
	if err := os.WriteFile(bad, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	job := execd.Job{Spec: execd.Spec{Workspace: "ws", Args: []string{"true"}, Root: bad}}
	if _, err := d.Start(t.Context(), job, newLog()); !errors.Is(err, vfs.ErrInvalid) {
		t.Errorf("no image: %v", err)
	}
}

// Where a root is, is asked for once, before anybody looks at it.
func TestResolve(t *testing.T) {
	root := smallRoot(t)
	d := newDesk(t, func(c *Config) {
		c.Host = true
		c.Resolve = func(path string) (string, error) {
			if path != "/named" {
				return "", vfs.ErrNotSupported
			}
			return root, nil
		}
	})
	p, _ := d.start(t, execd.Spec{Args: []string{"sh", "-c", "exit 8"}, Root: "/named"})
	if x := p.Wait(); x.Code != 8 {
		t.Errorf("%+v", x)
	}
	job := execd.Job{Spec: execd.Spec{Workspace: "ws", Args: []string{"true"}, Root: root}}
	if _, err := d.Start(t.Context(), job, newLog()); !errors.Is(err, vfs.ErrNotSupported) {
		t.Errorf("%v", err)
	}
}

// An image is held as long as there is a container of it.
func TestImageIsHeld(t *testing.T) {
	images := image.Open(image.Config{Dir: filepath.Join(t.TempDir(), "images")})
	t.Cleanup(func() {
		if err := images.Close(); err != nil {
			t.Error(err)
		}
	})
	d := newDesk(t, func(c *Config) { c.Host, c.Images = true, images })
	p, _ := d.start(t, execd.Spec{Args: []string{"sh", "-c", "exit 3"}, Root: savedImage(t, smallRoot(t))})
	p.Wait()
	c := p.(*process).cell
	if c.unhold == nil {
		t.Fatal("the cell does not hold its image")
	}
	held := true
	release := c.unhold
	c.unhold = func() { held = false; release() }
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if held {
		t.Error("the image is held when there is no container any more")
	}
}

// With the network of the host, its interfaces are there.
func TestHostNetwork(t *testing.T) {
	d := newDesk(t, func(c *Config) { c.Host = true })
	host, err := os.ReadFile("/proc/net/dev")
	if err != nil {
		t.Fatal(err)
	}
	p, out := d.start(t, execd.Spec{Args: []string{"cat", "/proc/net/dev"}, Net: "host"})
	p.Wait()
	if got := out.text(execd.Stdout); bytes.Count(host, []byte("\n")) != bytes.Count([]byte(got), []byte("\n")) {
		t.Errorf("%s\nof the host: %s", got, host)
	}
}

// A root directory leads nowhere out of it, and has what it has no place for left out.
func TestHostileRoot(t *testing.T) {
	d := newDesk(t, func(c *Config) { c.Host = true })
	victim := filepath.Join(t.TempDir(), "victim")
	for name, prepare := range map[string]func(etc string) error{
		"a symlink to the host": func(etc string) error { return os.Symlink("/old"+victim, filepath.Join(etc, "resolv.conf")) },
		"a directory of the host": func(etc string) error {
			return errors.Join(os.Remove(etc), os.Symlink("/old"+filepath.Dir(victim), etc))
		},
		"a symlink that leads elsewhere": func(etc string) error { return os.Symlink("../run/none/stub.conf", filepath.Join(etc, "resolv.conf")) },
		"no file":                        func(string) error { return nil },
		"a file":                         func(etc string) error { return os.WriteFile(filepath.Join(etc, "resolv.conf"), nil, 0o644) },
	} {
		root := smallRoot(t)
		etc := filepath.Join(root, "etc")
		if err := errors.Join(os.Mkdir(etc, 0o755), prepare(etc)); err != nil {
			t.Fatal(err)
		}
		job := execd.Job{Spec: execd.Spec{Workspace: "ws", Args: []string{"sh", "-c", "exit 7"}, Root: root, Net: "host"}}
		p, err := d.Start(t.Context(), job, newLog())
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if x := p.Wait(); x.Code != 7 {
			t.Errorf("%s: %+v", name, x)
		}
		if made, err := filepath.Glob(filepath.Join(filepath.Dir(victim), "*")); err != nil || len(made) != 0 {
			t.Errorf("%s: on the host are made %v, %v", name, made, err)
		}
	}
}

// The settings of the machine's git, npm and pip, which may have secrets in them, are not there, wherever these look.
func TestHostSettings(t *testing.T) {
	d := newDesk(t, nil)
	script := "cat /etc/gitconfig /etc/npmrc /etc/pip.conf"
	for _, name := range hostHidden {
		script += " /" + name
	}
	if x, got := d.sh(t, script+" 2>/dev/null; ls /etc/pki/tls/private /etc/ssl/private 2>/dev/null; exit 3"); x.Code != 3 || got != "" {
		t.Errorf("%+v, %q", x, got)
	}
}

// Files are hidden where they are, and nothing is made where there are none.
func TestHide(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"usr/etc", "usr/share", "home"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"usr/etc/file", "usr/share/other", "home/secret"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"usr/etc/inside": "../share/other", "usr/etc/outside": "../../home/secret", "usr/etc/dead": "none"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"usr/etc/file": "/usr/etc/file", "usr/etc/inside": "/usr/share/other", "usr/etc/outside": "", "usr/etc/dead": "",
		"usr/etc/none": "", "usr/etc/file/none": "", "none/none": "",
	} {
		var s launch.Setup
		err := hide(&s, root, []string{name})
		var got string
		for _, b := range s.Binds {
			got += b.Target
		}
		if err != nil || got != want {
			t.Errorf("%s: covered %q, want %q; %v", name, got, want, err)
		}
	}
}
