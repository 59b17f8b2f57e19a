package worker

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

const probeName = "carrel-js-probe"

func TestMain(m *testing.M) {
	if os.Args[0] == probeName {
		probe()
		return
	}
	os.Exit(m.Run())
}

// attempts are what somebody would try who has taken over the engine.
var attempts = []struct {
	name string
	try  func() error
}{
	{"open a file", func() error { _, err := os.Open("/etc/passwd"); return err }},
	{"list a directory", func() error { _, err := os.ReadDir("/proc"); return err }},
	{"make a file", func() error { return os.WriteFile("/tmp/carrel-js-probe", nil, 0o600) }},
	{"stat a file", func() error { _, err := os.Stat("/"); return err }},
	{"connect", func() error { _, err := net.Dial("tcp", "127.0.0.1:1"); return err }},
	{"make a socket", func() error { _, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); return err }},
	{"run a program", func() error { return exec.Command("/bin/true").Run() }},
	{"execve", func() error { return syscall.Exec("/bin/true", []string{"true"}, nil) }},
	{"signal another", func() error { return unix.Kill(os.Getppid(), 0) }},
	{"trace another", func() error { return unix.PtraceAttach(os.Getppid()) }},
	{"read its memory", func() error {
		b := make([]byte, 1)
		_, err := unix.ProcessVMReadv(os.Getppid(), []unix.Iovec{{Base: &b[0], Len: 1}}, []unix.RemoteIovec{{Base: 4096, Len: 1}}, 0)
		return err
	}},
	{"fork", func() error { return forkBy(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0) }},
	{"fork as vfork does", func() error { return forkBy(unix.SYS_CLONE, unix.CLONE_VFORK|uintptr(unix.SIGCHLD), 0) }},
	{"fork by clone3", func() error {
		args := cloneArgs{exitSignal: uint64(unix.SIGCHLD)}
		return forkBy(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args))
	}},
	{"fork by clone3, which is not there", func() error {
		args := cloneArgs{exitSignal: uint64(unix.SIGCHLD)}
		err := forkBy(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args))
		if errors.Is(err, unix.ENOSYS) {
			return err
		}
		return nil // so that a C library does without
	}},
	{"fork into a user namespace", func() error { return forkBy(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0) }},
	{"make a thread with a network namespace", func() error {
		const thread = unix.CLONE_THREAD | unix.CLONE_SIGHAND | unix.CLONE_VM
		err := forkBy(unix.SYS_CLONE, thread|unix.CLONE_NEWNET, 0)
		if errors.Is(err, unix.EPERM) {
			return err
		}
		return nil
	}},
	{"mount", func() error { return unix.Mount("none", "/", "tmpfs", 0, "") }},
	{"leave its namespaces", func() error { return unix.Unshare(unix.CLONE_NEWUSER) }},
	{"load a BPF program", func() error { return errnoOf(unix.SYS_BPF) }},
	{"io_uring", func() error { return errnoOf(unix.SYS_IO_URING_SETUP) }},
	{"make a key", func() error { return errnoOf(unix.SYS_ADD_KEY) }},
	{"map a file in memory", func() error { _, err := unix.MemfdCreate("x", 0); return err }},
	{"become root", func() error { return unix.Setuid(0) }},
	{"raise a limit", func() error { return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1, Max: 1}) }},
}

// cloneArgs is struct clone_args (clone(2)).
type cloneArgs struct {
	flags, pidfd, childTid, parentTid, exitSignal, stack, stackSize, tls uint64
}

// forkBy makes a process, which ends at once.
func forkBy(call, a, b uintptr) error {
	pid, _, errno := unix.RawSyscall6(call, a, b, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		for {
			unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
		}
	}
	return nil
}

func errnoOf(call uintptr) error {
	if _, _, errno := unix.Syscall(call, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// probe confines this process and tries everything.
func probe() {
	if err := confine(DefaultMemory); err != nil {
		fmt.Println("confine:", err)
		return
	}
	for _, a := range attempts {
		if err := a.try(); err == nil {
			fmt.Println("it could", a.name)
		}
	}
	fmt.Println("tried", len(attempts), "as", os.Getuid() != 0)
}

// A worker can do none of what it does not need.
func TestConfine(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{probeName}
	cmd.Env = []string{}
	out, err := cmd.CombinedOutput()
	if want := fmt.Sprintln("tried", len(attempts), "as true"); err != nil || !strings.HasSuffix(string(out), want) || strings.Contains(string(out), "it could") {
		t.Errorf("%v: %s, want %s", err, out, want)
	}
}
