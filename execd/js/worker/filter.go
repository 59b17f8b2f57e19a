package worker

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// allowed are the system calls of a Go program that computes, and reads and writes what it has open. There is none among
// them that opens a file, makes a socket, runs a program, makes a process or sends a signal to another. threads allows what else
// there must be.
var allowed = strings.Fields(`
	read write readv writev close
	mmap munmap mprotect madvise mremap brk mincore
	futex futex_waitv sched_yield sched_getaffinity nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time
	epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd2 pipe2 poll ppoll
	set_robust_list rseq set_tid_address gettid getpid tgkill
	rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack restart_syscall
	getrandom exit exit_group`)

// nobody is the user and group of what has no files.
const nobody = 65534

// confine takes from this process all that a module is not to have. There is no way back.
func confine(memory uint64) error {
	if err := limit(memory); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		if err := dropRoot(); err != nil {
			return err
		}
	}
	info, err := arch.GetInfo("")
	if err != nil {
		return fmt.Errorf("filter system calls: %w", err)
	}
	var names []string
	for _, name := range allowed {
		if _, ok := info.SyscallNames[name]; ok { // not every machine has all
			names = append(names, name)
		}
	}
	policy := seccomp.Policy{
		DefaultAction: seccomp.ActionErrno,
		Syscalls:      []seccomp.SyscallGroup{{Action: seccomp.ActionAllow, Names: names}},
	}
	program, err := policy.Assemble()
	if err != nil {
		return fmt.Errorf("filter system calls: %w", err)
	}
	if err := load(append(threads(info), program...)); err != nil {
		return fmt.Errorf("filter system calls: %w", err)
	}
	return nil
}

// newNamespaces are the flags of clone(2) that make namespaces.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// threads are the beginning of the filter: clone(2) makes threads of this process, and nothing else. The flags of clone3 lie in
// memory, where no filter sees them: as on a kernel that has none, whoever calls it does without. The conditions of the library
// are not used: a call that does not meet one is compared on by its argument in place of its number.
func threads(info *arch.Info) []bpf.Instruction {
	const number, architecture, flags = 0, 4, 16 // in struct seccomp_data; the machine is little-endian
	refuse := func(errno uint32) bpf.Instruction { return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | errno} }
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: architecture, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(info.ID), SkipTrue: 9}, // the rest refuses all of another
		bpf.LoadAbsolute{Off: number, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(info.SyscallNames["clone3"]), SkipTrue: 1},
		refuse(uint32(unix.ENOSYS)),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(info.SyscallNames["clone"]), SkipTrue: 5},
		bpf.LoadAbsolute{Off: flags, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: newNamespaces, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: unix.CLONE_THREAD, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
		refuse(uint32(unix.EPERM)),
	}
}

// load has a filter in force on all threads of this process.
func load(program []bpf.Instruction) error {
	raw, err := bpf.Assemble(program)
	if err != nil {
		return err
	}
	filters := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filters[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	runtime.LockOSThread() // the filter's flag gives the others what this one has
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	fprog := unix.SockFprog{Len: uint16(len(filters)), Filter: &filters[0]}
	thread, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&fprog)))
	switch {
	case errno != 0:
		return errno
	case thread != 0:
		return fmt.Errorf("thread %d has another filter", thread)
	}
	return nil
}

// limit bounds what the kernel gives this process, should the engine's own limit not hold.
func limit(memory uint64) error {
	for _, l := range []struct {
		resource int
		most     uint64
	}{{unix.RLIMIT_AS, addressSpace(memory)}, {unix.RLIMIT_CORE, 0}, {unix.RLIMIT_FSIZE, 0}} {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.most, Max: l.most}); err != nil {
			return fmt.Errorf("limit resource %d: %w", l.resource, err)
		}
	}
	return nil
}

func addressSpace(memory uint64) uint64 {
	if raceDetector {
		return unix.RLIM_INFINITY
	}
	return memory + overhead
}

// dropRoot makes this process nobody's, on all its threads.
func dropRoot() error {
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("drop groups: %w", err)
	}
	if err := syscall.Setresgid(nobody, nobody, nobody); err != nil {
		return fmt.Errorf("drop the group: %w", err)
	}
	if err := syscall.Setresuid(nobody, nobody, nobody); err != nil {
		return fmt.Errorf("drop the user: %w", err)
	}
	return nil
}
