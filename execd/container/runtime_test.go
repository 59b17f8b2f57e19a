package container

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
)

// A runtime for tests. It runs the command of a bundle as it is, in no container, and keeps what it was given:
//
//	run     records the bundle, and runs the command in the directory of the mount at /workspace, without a log
//	kill    sends the signal to the command
//	fail    as a command: says in its log that it has failed
const fakeRuntime = `#!/bin/sh
state=$2 log=$4; shift 6
case $1 in --*) shift ;; esac
case $1 in
run)
	bundle=$3 id=$4
	cp "$bundle/config.json" RECORD/config.json
	find "$bundle/rootfs" | sed "s,$bundle/rootfs,," | sort > RECORD/rootfs
	mkdir "$state/$id"
	echo $$ > "$state/$id/pid"
	if grep -q '"fail"\]' "$bundle/config.json"; then
		rm -r "$state/$id"
		echo '{"level":"warning","msg":"so so"}' > "$log"
		echo '{"level":"error","msg":"no such container"}' >> "$log"
		exit 1
	fi
	if grep -q '"args":\["sleep"\]' "$bundle/config.json"; then
		echo sleeping
		exec sleep 1000
	fi
	if grep -q '"args":\["left"\]' "$bundle/config.json"; then
		exit 0
	fi
	cat
	echo end >&2
	rm -r "$state/$id"
	exit 7 ;;
kill)
	kill -"$3" "$(cat "$state/$2/pid")" ;;
delete)
	echo "$3" >> RECORD/deleted
	rm -r "$state/$3" ;;
esac
`

// newRuntimeDesk has a fake runtime of a name, and returns what it records.
func newRuntimeDesk(t *testing.T, name string) (d *desk, record string) {
	t.Helper()
	record = t.TempDir()
	bin := t.TempDir()
	script := strings.ReplaceAll(fakeRuntime, "RECORD", record)
	if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	bundles := filepath.Join(t.TempDir(), "bundles")
	d = newDesk(t, func(c *Config) { c.Host, c.Bundles = true, bundles })
	t.Cleanup(func() {
		if left, err := os.ReadDir(bundles); len(left) != 0 || err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("bundles are left: %v, %v", left, err)
		}
	})
	return d, record
}

func readConfig(t *testing.T, record string) specs.Spec {
	t.Helper()
	var spec specs.Spec
	b, err := os.ReadFile(filepath.Join(record, "config.json"))
	if err == nil {
		err = json.Unmarshal(b, &spec)
	}
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// A runtime is given a bundle that says what our own container is made of, and its output, input and exit status are the
// exec's.
func TestRuntimeBundle(t *testing.T) {
	d, record := newRuntimeDesk(t, "crun")
	p, out := d.start(t, execd.Spec{
		Runtime: "crun", Args: []string{"any", "thing"}, Env: []string{"A=b"}, Dir: "/sub", Stdin: []byte("in"), Open: true,
		Limits: execd.Limits{Memory: 1 << 30, CPU: 500, Pids: 20},
	})
	_, err := p.Input(t.Context(), []byte("put"))
	if err := errors.Join(err, p.CloseInput()); err != nil {
		t.Fatal(err)
	}
	if x := p.Wait(); x.Code != 7 || x.Reason != "" || x.Signal != 0 {
		t.Errorf("%+v", x)
	}
	if o, e := out.text(execd.Stdout), out.text(execd.Stderr); o != "input" || e != "end\n" {
		t.Errorf("it wrote %q, %q", o, e)
	}
	spec := readConfig(t, record)
	pr := spec.Process
	if !slices.Equal(pr.Args, []string{"any", "thing"}) || pr.Cwd != "/workspace/sub" || pr.Terminal || !pr.NoNewPrivileges ||
		!slices.Contains(pr.Env, "A=b") || !slices.Contains(pr.Env, "PWD=/workspace/sub") || len(pr.Capabilities.Bounding) != len(kept) {
		t.Errorf("process %+v", pr)
	}
	mount := map[string]specs.Mount{}
	for _, m := range spec.Mounts {
		mount[m.Destination] = m
	}
	if m := mount["/workspace"]; m.Source != filepath.Join(d.dir, "ws") || !slices.Contains(m.Options, "rw") {
		t.Errorf("the workspace is %+v", m)
	}
	if m := mount["/usr"]; m.Source != "/usr" || !slices.Contains(m.Options, "ro") || !slices.Contains(m.Options, "rro") {
		t.Errorf("/usr is %+v", m)
	}
	for _, target := range []string{"/proc", "/dev", "/dev/pts", "/dev/shm", "/tmp", "/run", "/root"} {
		if m := mount[target]; m.Type == "" || m.Type == "bind" {
			t.Errorf("%s is %+v", target, m)
		}
	}
	for _, target := range []string{"/etc", "/home", "/sys", "/etc/shadow"} {
		if m, ok := mount[target]; ok {
			t.Errorf("%s is the machine's: %+v", target, m)
		}
	}
	var namespaces []string
	for _, n := range spec.Linux.Namespaces {
		namespaces = append(namespaces, string(n.Type))
	}
	for _, want := range []string{"mount", "pid", "ipc", "uts", "cgroup", "network"} {
		if !slices.Contains(namespaces, want) {
			t.Errorf("no %s namespace: %q", want, namespaces)
		}
	}
	r := spec.Linux.Resources
	each := slices.ContainsFunc(pr.Rlimits, func(l specs.POSIXRlimit) bool { return l.Type == "RLIMIT_AS" && l.Hard == 1<<30 })
	whole := r != nil && *r.Memory.Limit == 1<<30 && r.Pids.Limit == 20 && *r.CPU.Quota*2 == int64(*r.CPU.Period)
	if each == whole {
		t.Errorf("limits: of each process %t, of the whole %t", each, whole)
	}
	if !spec.Root.Readonly || !slices.Contains(spec.Linux.MaskedPaths, "/proc/kcore") || !slices.Contains(spec.Linux.ReadonlyPaths, "/proc/sys") {
		t.Errorf("root %+v, masked %q, read-only %q", spec.Root, spec.Linux.MaskedPaths, spec.Linux.ReadonlyPaths)
	}
	root, err := os.ReadFile(filepath.Join(record, "rootfs"))
	if err != nil || !strings.Contains(string(root), "\n/workspace\n") || strings.Contains(string(root), "/usr/") {
		t.Errorf("the root has %q, %v", root, err)
	}
	rule := map[string]int{}
	for _, s := range spec.Linux.Seccomp.Syscalls {
		if s.Action != specs.ActErrno || s.ErrnoRet == nil {
			t.Errorf("rule %+v", s)
		}
		for _, name := range s.Names {
			rule[name]++
		}
	}
	if rule["mount"] != 1 || rule["clone3"] != 1 || rule["clone"] != 7 || rule["ioctl"] != 2 || rule["socket"] != len(familiesDenied) || rule["read"] != 0 {
		t.Errorf("rules %v", rule)
	}
}

// The network of the machine, and a directory of it as the root.
func TestRuntimeRights(t *testing.T) {
	d, record := newRuntimeDesk(t, "runc")
	root := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(root, "bin"), 0o755), os.Symlink("bin", filepath.Join(root, "sbin"))); err != nil {
		t.Fatal(err)
	}
	p, _ := d.start(t, execd.Spec{Runtime: "runc", Args: []string{"x"}, Net: "host", Root: root})
	p.Wait()
	spec := readConfig(t, record)
	for _, n := range spec.Linux.Namespaces {
		if n.Type == specs.NetworkNamespace {
			t.Error("it has a network of its own")
		}
	}
	if i := slices.IndexFunc(spec.Mounts, func(m specs.Mount) bool { return m.Destination == "/bin" }); i < 0 ||
		spec.Mounts[i].Source != filepath.Join(root, "bin") {
		t.Errorf("mounts %+v", spec.Mounts)
	}
	if list, err := os.ReadFile(filepath.Join(record, "rootfs")); err != nil || !strings.Contains(string(list), "\n/sbin\n") {
		t.Errorf("the root has %q, %v", list, err)
	}
}

// What goes wrong in a runtime is said, and what it has left is ended.
func TestRuntimeEnds(t *testing.T) {
	d, record := newRuntimeDesk(t, "crun")
	for code, args := range map[int][]string{execd.CodeNotRun: {"sh", "fail"}, execd.CodeNoProgram: {"no-such-program", "fail"}} {
		p, _ := d.start(t, execd.Spec{Runtime: "crun", Args: args})
		if x := p.Wait(); x.Code != code || x.Reason != "no such container" {
			t.Errorf("a failure is %+v, want code %d", x, code)
		}
	}
	p, _ := d.start(t, execd.Spec{Runtime: "crun", Args: []string{"left"}})
	if x := p.Wait(); x.Code != 0 {
		t.Errorf("%+v", x)
	}
	if deleted, err := os.ReadFile(filepath.Join(record, "deleted")); err != nil || !strings.HasPrefix(string(deleted), cgroupPrefix) {
		t.Errorf("deleted: %q, %v", deleted, err)
	}
	for number, want := range map[unix.Signal]execd.Exit{
		unix.SIGTERM: {Code: 128 + 15, Signal: 15}, unix.SIGKILL: {Code: 128 + 9, Signal: 9},
	} {
		p, out := d.start(t, execd.Spec{Runtime: "crun", Args: []string{"sleep"}})
		out.expect(t, "sleeping")
		if err := p.Signal(int(number)); err != nil {
			t.Fatal(err)
		}
		if x := p.Wait(); x.Code != want.Code || x.Signal != want.Signal {
			t.Errorf("after signal %d: %+v", number, x)
		}
	}
	p, out := d.start(t, execd.Spec{Runtime: "crun", Args: []string{"sleep"}})
	out.expect(t, "sleeping")
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if x := p.Wait(); x.Signal != int(unix.SIGKILL) {
		t.Errorf("after the backend's end: %+v", x)
	}
}

// What cannot be is refused before anything is made.
func TestRuntimeRefused(t *testing.T) {
	d, _ := newRuntimeDesk(t, "crun")
	t.Setenv("PATH", t.TempDir()) // which has none
	for _, tt := range []struct {
		runtime string
		want    error
	}{{"runc", vfs.ErrNotSupported}, {"sh", vfs.ErrInvalid}, {"../crun", vfs.ErrInvalid}} {
		_, err := d.Start(t.Context(), execd.Job{Spec: execd.Spec{Runtime: tt.runtime, Workspace: "ws", Args: []string{"x"}}}, newLog())
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.runtime, err, tt.want)
		}
	}
}

// What a daemon that died has left is ended by the next one.
func TestRuntimeLeft(t *testing.T) {
	_, record := newRuntimeDesk(t, "crun")
	program, err := exec.LookPath("crun")
	if err != nil {
		t.Fatal(err)
	}
	parent := filepath.Join(t.TempDir(), "bundles")
	b, err := makeBundle(parent, program, cellKey{}, t.TempDir(), nil, execd.Job{Spec: execd.Spec{Args: []string{"x"}}})
	if err == nil {
		err = os.Mkdir(filepath.Join(b.path("state"), b.id), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	newDesk(t, func(c *Config) { c.Bundles = parent })
	if left, err := os.ReadDir(parent); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if deleted, err := os.ReadFile(filepath.Join(record, "deleted")); err != nil || string(deleted) != b.id+"\n" {
		t.Errorf("deleted: %q, %v", deleted, err)
	}
}

// plainCgroups runs a program where a unified hierarchy of cgroups beside others is not to be seen: runtimes refuse one.
const plainCgroups = `#!/bin/sh
exec unshare --mount sh -c 'umount --lazy /sys/fs/cgroup/unified 2>&-; exec "$0" "$@"' PROGRAM "$@"
`

// The runtimes that Debian has do what the backend itself does.
func TestRuntimes(t *testing.T) {
	for _, name := range []string{"crun", "runc"} {
		t.Run(name, func(t *testing.T) {
			program, err := exec.LookPath(name)
			if err != nil {
				t.Fatalf("apt-get install %s: %v", name, err)
			}
			bin := t.TempDir()
			script := strings.ReplaceAll(plainCgroups, "PROGRAM", program)
			if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			d := newDesk(t, func(c *Config) { c.Bundles = filepath.Join(t.TempDir(), "bundles") })
			sh := func(script string) (execd.Exit, string) {
				p, out := d.start(t, execd.Spec{Runtime: name, Args: []string{"sh", "-c", script}})
				x := p.Wait()
				return x, out.text(execd.Stdout) + out.text(execd.Stderr)
			}
			for _, tt := range []struct{ script, want string }{
				{"echo kept > file; cat /workspace/file; pwd", "kept\n/workspace\n"},
				{"touch /x /usr/x /etc/x 2>&1 | wc -l", "3\n"},
				{"ls /home /root /tmp | wc -w", "3\n"}, // the names of the directories alone
				{"ls /sys | wc -l; cat /proc/kcore 2>&- | head -c 1 | wc -c", "0\n0\n"},
				{"ls -A /etc/shadow /dev/mem /dev/fuse 2>&1 | wc -l", "3\n"},
				{"cat /usr/etc/npmrc /usr/local/etc/npmrc /etc/npmrc 2>&- | wc -c", "0\n"}, // of the host's, which may have secrets
				{"mount -t tmpfs x /tmp 2>&- || echo no; unshare -n true 2>&- || echo no", "no\nno\n"},
				{"grep -c : /proc/net/dev", "1\n"},
				{"cat /proc/sys/kernel/hostname", "carrel\n"},
			} {
				if x, got := sh(tt.script); got != tt.want {
					t.Errorf("%s: %q, want %q; %+v", tt.script, got, tt.want, x)
				}
			}
			if x, _ := sh("exit 5"); x.Code != 5 {
				t.Errorf("%+v", x)
			}
			p, out := d.start(t, execd.Spec{Runtime: name, Args: []string{"sh", "-c", "setsid sleep 1000 & echo ready; wait"}})
			out.expect(t, "ready")
			if err := p.Signal(int(unix.SIGKILL)); err != nil {
				t.Fatal(err)
			}
			if x := p.Wait(); x.Signal != int(unix.SIGKILL) {
				t.Errorf("killed: %+v", x)
			}
			p, out = d.start(t, execd.Spec{Runtime: name, Args: []string{"sh", "-c", "test -t 0 && stty size"}, TTY: &execd.Size{Rows: 7, Cols: 9}})
			if x := p.Wait(); x.Code != 0 || !strings.Contains(out.text(execd.Stdout), "7 9") {
				t.Errorf("in a terminal: %+v, %q", x, out.text(execd.Stdout))
			}
			p, _ = d.start(t, execd.Spec{Runtime: name, Args: []string{"no-such-program"}})
			if x := p.Wait(); x.Code != execd.CodeNoProgram || x.Reason == "" {
				t.Errorf("of no program: %+v", x)
			}
			if _, text := sh("no-such-program"); !strings.Contains(text, "not found") {
				t.Errorf("%q", text)
			}
		})
	}
}
