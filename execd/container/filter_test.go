package container

import (
	"encoding/binary"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// verdict runs the filter on a system call as the kernel would.
func verdict(t *testing.T, audit, number uint32, args ...uint64) uint32 {
	t.Helper()
	raw, err := filter()
	if err != nil {
		t.Fatal(err)
	}
	var program []bpf.Instruction
	for ; len(raw) > 0; raw = raw[8:] {
		program = append(program, bpf.RawInstruction{
			Op: binary.NativeEndian.Uint16(raw), Jt: raw[2], Jf: raw[3], K: binary.NativeEndian.Uint32(raw[4:]),
		}.Disassemble())
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	// struct seccomp_data, whose words the kernel loads in its own byte order and the interpreter in that of the network.
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data, number)
	binary.BigEndian.PutUint32(data[4:], audit)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[16+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[20+8*i:], uint32(a>>32))
	}
	n, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

func TestFilter(t *testing.T) {
	info, err := arch.GetInfo("")
	if err != nil {
		t.Fatal(err)
	}
	call := func(name string) uint32 {
		n, ok := info.SyscallNames[name]
		if !ok {
			t.Fatalf("no system call %s", name)
		}
		return uint32(n)
	}
	const allow = unix.SECCOMP_RET_ALLOW
	const refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	const missing = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	for _, tt := range []struct {
		name string
		want uint32
		args []uint64
	}{
		{"read", allow, nil},
		{"execve", allow, nil},
		{"ptrace", allow, nil},
		{"clone", allow, []uint64{unix.CLONE_VM | unix.CLONE_VFORK | uint64(unix.SIGCHLD)}},
		{"clone", refuse, []uint64{unix.CLONE_NEWUSER}},
		{"clone", refuse, []uint64{unix.CLONE_VM | unix.CLONE_NEWNS}},
		{"clone", refuse, []uint64{unix.CLONE_NEWNET}},
		{"clone", refuse, []uint64{unix.CLONE_NEWPID}},
		{"clone3", missing, nil},
		{"unshare", refuse, nil},
		{"mount", refuse, nil},
		{"bpf", refuse, nil},
		{"io_uring_setup", refuse, nil},
		{"socket", allow, []uint64{unix.AF_INET}},
		{"socket", allow, []uint64{unix.AF_UNIX}},
		{"socket", allow, []uint64{unix.AF_NETLINK}},
		{"socket", refuse, []uint64{unix.AF_VSOCK}},
		{"socket", refuse, []uint64{unix.AF_PACKET}},
		{"ioctl", allow, []uint64{1, unix.TIOCGWINSZ}},
		{"ioctl", refuse, []uint64{1, unix.TIOCSTI}},
	} {
		if got := verdict(t, uint32(info.ID), call(tt.name), tt.args...); got != tt.want {
			t.Errorf("%s%x: %#x, want %#x", tt.name, tt.args, got, tt.want)
		}
	}
	if got := verdict(t, uint32(info.ID), 4000); got != missing {
		t.Errorf("a system call that is not known: %#x", got)
	}
	if got := verdict(t, 0x40000003, call("read")); got != missing {
		t.Errorf("a system call of another architecture: %#x", got)
	}
}
