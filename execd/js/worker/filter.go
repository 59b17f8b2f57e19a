package worker

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// allowed are the system calls of a Go program that computes, and reads and writes what it has open. There is none among
// them that opens a file, makes a socket, runs a program or sends a signal to another process.
var allowed = strings.Fields(`
	read write readv writev close
	mmap munmap mprotect madvise mremap brk mincore
	futex futex_waitv sched_yield sched_getaffinity nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time
	epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd2 pipe2 poll ppoll
	clone clone3 set_robust_list rseq set_tid_address gettid getpid tgkill
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
	err = seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionErrno,
		Syscalls:      []seccomp.SyscallGroup{{Action: seccomp.ActionAllow, Names: names}},
	}})
	if err != nil {
		return fmt.Errorf("filter system calls: %w", err)
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
