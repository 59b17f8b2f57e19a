package container

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/execd"
)

// Attempts to get out. Each is a script that prints BREAK when it has got what it wanted, or ends with status 0 when that is
// the break. $HOST is a secret file of the host, $PORT a port that the host's loopback listens on, $PID a process of the host.
var escapes = []struct {
	name, script string
	printed      bool // only BREAK counts
}{
	// Files of the host.
	{"a secret file", `cat $HOST`, false},
	{"a secret by the root's symlink", `cat /proc/1/root$HOST`, false},
	{"a secret by dots", `cat /workspace/../../../../..$HOST`, false},
	{"a symlink in the workspace", `ln -sf $HOST /workspace/l; cat /workspace/l`, false},
	{"a symlink chain", `ln -sfn / /workspace/r; cat /workspace/r$HOST`, false},
	{"shadow passwords", `cat /etc/shadow`, false},
	{"keys of ssh", `cat /etc/ssh/ssh_host_*`, false},
	{"home directories", `ls -A /root /home | grep -v : | grep . && echo BREAK`, true},
	{"run directory", `ls /run/* > /dev/null 2>&1 && echo BREAK`, true},
	{"var", `ls /var/lib /var/log`, false},
	{"writing programs", `echo x > /usr/bin/true`, false},
	{"making files in /usr", `touch /usr/x`, false},
	{"making files in /etc", `touch /etc/x`, false},
	{"making files in the root", `touch /x`, false},
	{"writing the root by its directory", `touch /proc/self/root/x`, false},
	// Other workspaces.
	{"another workspace", `cat /workspace/../other/secret || cat /other/secret`, false},
	{"a hard link out", `ln /usr/bin/true /workspace/h`, false},
	// Mounts.
	{"mount", `mount -t tmpfs none /mnt || mount -t tmpfs none /tmp`, false},
	{"bind mount", `mount --bind /workspace /usr`, false},
	{"remount read-write", `mount -o remount,rw /usr || mount -o remount,bind,rw /`, false},
	{"unmount what covers", `umount /proc/sys || umount /proc`, false},
	{"mount proc again", `mkdir -p /tmp/p; mount -t proc none /tmp/p`, false},
	{"chroot", `mkdir -p /tmp/c; chroot /usr /bin/true; perl -e 'exit(chroot("/tmp/c") ? 0 : 1)'`, false},
	{"new user namespace", `unshare -U true`, false},
	{"new mount namespace", `unshare -m true`, false},
	{"new user namespace by clone", `perl -e 'exit(syscall(56, 0x10000011, 0, 0, 0, 0) >= 0 ? 0 : 1)'`, false},
	{"namespaces of the first process", `nsenter -t 1 -m true`, false},
	{"setns by descriptor", `perl -e 'open(F, "<", "/proc/self/ns/net"); exit(syscall(308, fileno(F), 0) == 0 ? 0 : 1)'`, false},
	// Other processes.
	{"processes of the host", `[ -d /proc/$PID ] && tr '\0' ' ' < /proc/$PID/cmdline | grep -q . && echo BREAK`, true},
	{"killing the first process", `kill -9 1; sleep 0.05; [ -d /proc/1 ] || echo BREAK`, true},
	{"memory of the first process", `head -c 1 /proc/1/mem || cat /proc/1/environ`, false},
	{"descriptors of the first process", `ls /proc/1/fd/ && cat /proc/1/fd/3`, false},
	{"the program of the first process", `cat /proc/1/exe > /dev/null`, false},
	{"tracing the first process", `perl -e 'exit(syscall(101, 16, 1, 0, 0) == 0 ? 0 : 1)'`, false},
	// Interfaces of the kernel.
	{"core pattern", `echo '|/workspace/x' > /proc/sys/kernel/core_pattern`, false},
	{"sysctl", `echo 1 > /proc/sys/vm/drop_caches`, false},
	{"sysrq", `echo h > /proc/sysrq-trigger`, false},
	{"kernel memory", `head -c 1 /proc/kcore | grep -q . || head -c 1 /dev/mem || head -c 1 /dev/kmsg`, false},
	{"kernel log", `dmesg`, false},
	{"sysfs", `ls /sys/* > /dev/null 2>&1 && echo BREAK`, true},
	{"cgroups", `mkdir /sys/fs/cgroup/x; ls /sys/fs/cgroup/memory`, false},
	{"oom score", `echo -1000 > /proc/self/oom_score_adj`, false},
	{"device nodes", `mknod /tmp/d b 8 0 || mknod /workspace/d c 1 1`, false},
	{"disks", `ls /dev/vd* /dev/sd* /dev/nvme* /dev/mem /dev/fuse /dev/kvm 2> /dev/null | grep . && echo BREAK`, true},
	{"keyring", `perl -e 'exit(syscall(248, "user", "a", "b", 1, -2) >= 0 ? 0 : 1)'`, false},
	{"bpf", `perl -e 'exit(syscall(321, 0, 0, 0) == -1 && $!{EPERM} ? 1 : 0)'`, false},
	{"io_uring", `perl -e 'exit(syscall(425, 1, 0) == -1 && $!{EPERM} ? 1 : 0)'`, false},
	{"perf events", `perl -e 'exit(syscall(298, 0, 0, 0, 0, 0) == -1 && $!{EPERM} ? 1 : 0)'`, false},
	{"modules", `perl -e 'exit(syscall(175, 0, 0, 0) == -1 && $!{EPERM} ? 1 : 0)'`, false},
	{"system calls of 32 bits", `perl -e 'exit(syscall(0x40000000 + 165, 0, 0, 0, 0, 0) == -1 && $!{ENOSYS} ? 1 : 0)'`, false},
	{"handles of files", `perl -e 'exit(syscall(304, 0, 0, 0) == -1 && $!{EPERM} ? 1 : 0)'`, false},
	{"the clock", `date -s 2000-01-01`, false},
	{"the host name", `perl -e 'exit(syscall(170, "x", 1) == 0 ? 0 : 1)'`, false},
	{"reboot", `perl -e 'exit(syscall(169, 0xfee1dead, 672274793, 0, 0) == 0 ? 0 : 1)'`, false},
	// Privileges.
	{"a set-user-ID program", `cp /usr/bin/id /workspace/suid && chmod 4755 /workspace/suid && chown 65534 /workspace/suid &&
		[ "$(/workspace/suid -u)" = 65534 ] && echo BREAK`, true},
	{"capabilities", `for set in Inh Prm Eff Bnd Amb; do
		[ $((0x$(sed -n "s/Cap$set:\t//p" /proc/self/status) & ~0x4fb)) = 0 ] || echo BREAK; done`, true},
	{"new privileges", `grep -q 'NoNewPrivs:.1' /proc/self/status && grep -q 'Seccomp:.2' /proc/self/status || echo BREAK`, true},
	{"priority", `nice -n -5 true 2> /dev/null; perl -e 'exit(setpriority(0, 0, -10) ? 0 : 1)'`, false},
	// Network.
	{"loopback of the host", `perl -MIO::Socket::INET -e 'exit(IO::Socket::INET->new("127.0.0.1:$ENV{PORT}") ? 0 : 1)'`, false},
	{"other machines", `perl -MIO::Socket::INET -e 'exit(IO::Socket::INET->new(PeerAddr => "192.0.2.1:80", Timeout => 1) ? 0 : 1)'`, false},
	{"interfaces", `[ $(tail -n +3 /proc/net/dev | wc -l) = 1 ] || echo BREAK`, true},
	{"abstract sockets of the host", `grep -q carrel-escape-test-$PID /proc/net/unix && echo BREAK`, true},
	{"raw sockets", `perl -MSocket -e 'exit(socket(S, AF_INET, SOCK_RAW, 1) ? 0 : 1)'`, false},
	{"packets", `perl -MSocket -e 'exit(socket(S, 17, SOCK_RAW, 0) ? 0 : 1)'`, false},
	{"vsock", `perl -MSocket -e 'exit(socket(S, 40, SOCK_STREAM, 0) ? 0 : 1)'`, false},
}

// A script whose interpreter is the program that starts it is run by this one, whose file nothing then may change.
func TestProgramIsReadOnly(t *testing.T) {
	if os.Getenv("CARREL_INSIDE") != "" {
		fmt.Println(os.Chmod("/proc/self/exe", 0o755))
		return
	}
	d := newDesk(t, nil)
	if err := os.MkdirAll(filepath.Join(d.dir, "ws"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := []byte("#!/proc/self/exe -test.run=^TestProgramIsReadOnly$\n")
	if err := os.WriteFile(filepath.Join(d.dir, "ws", "script"), script, 0o755); err != nil {
		t.Fatal(err)
	}
	p, out := d.start(t, execd.Spec{Args: []string{"./script"}, Env: []string{"CARREL_INSIDE=1"}})
	if x := p.Wait(); x.Code != 0 || !strings.Contains(out.text(execd.Stdout), unix.EROFS.Error()) {
		t.Errorf("%+v, %q, %q", x, out.text(execd.Stdout), out.text(execd.Stderr))
	}
}

// Every attempt to get out fails, is seen to fail by the result, and leaves the container and the daemon as they were.
func TestEscapes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	abstract, err := net.Listen("unix", fmt.Sprintf("@carrel-escape-test-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	d := newDesk(t, nil)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("BREAK"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(d.dir, "other"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "other", "secret"), []byte("BREAK"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	setting := fmt.Sprintf("export HOST=%s PORT=%s PID=%d\n", secret, port, os.Getpid())
	for _, tt := range escapes {
		x, out := d.sh(t, setting+tt.script)
		if strings.Contains(out, "BREAK") || !tt.printed && x.Code == 0 {
			t.Errorf("%s: %+v\n%s", tt.name, x, out)
		}
	}
	if x, out := d.sh(t, "echo alive"); x.Code != 0 || out != "alive\n" {
		t.Errorf("afterwards: %+v %q", x, out)
	}
	if n := len(d.cells); n != 1 {
		t.Errorf("%d containers, want the one from before", n)
	}
}
