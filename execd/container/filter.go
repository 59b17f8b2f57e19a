package container

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// denied are system calls that no program in a container needs, or that reach what is not in it. They fail with EPERM.
// Those that the kernel has and this program does not know fail with ENOSYS, so that programs do without.
var denied = strings.Fields(`
	mount umount2 pivot_root chroot open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr
	unshare setns
	add_key request_key keyctl
	bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register
	init_module finit_module delete_module create_module get_kernel_syms query_module
	kexec_load kexec_file_load reboot swapon swapoff
	acct quotactl quotactl_fd nfsservctl lookup_dcookie
	open_by_handle_at fanotify_init
	iopl ioperm modify_ldt
	settimeofday clock_settime clock_adjtime adjtimex stime
	syslog vhangup uselib ustat sysfs _sysctl
	move_pages mbind migrate_pages set_mempolicy set_mempolicy_home_node
	kcmp pidfd_getfd process_madvise
	sethostname setdomainname
	vm86 vm86old afs_syscall getpmsg putpmsg security tuxcall vserver`)

// notThere fail with ENOSYS: the C library then does with less. The flags of clone3 lie in memory, where no filter sees
// them.
var notThere = []string{"clone3"}

// newNamespaces are the flags of clone(2) that make namespaces.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// filter is the program that seccomp(2) takes, in bytes.
var filter = sync.OnceValues(func() ([]byte, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return nil, fmt.Errorf("filter system calls: %w", err)
	}
	policy := seccomp.Policy{DefaultAction: seccomp.ActionErrno, Syscalls: []seccomp.SyscallGroup{
		{Action: seccomp.ActionErrno, Names: known(info, denied)},
		{Action: seccomp.ActionAllow, Names: allowed(info)},
	}}
	program, err := policy.Assemble()
	if err != nil {
		return nil, fmt.Errorf("filter system calls: %w", err)
	}
	last := len(program) - 1 // what is neither denied nor allowed, and any other architecture
	program[last] = bpf.RetConstant{Val: uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.ENOSYS)}
	raw, err := bpf.Assemble(append(conditions(info), program...))
	if err != nil {
		return nil, fmt.Errorf("filter system calls: %w", err)
	}
	var out []byte
	for _, r := range raw {
		out = binary.NativeEndian.AppendUint16(out, r.Op)
		out = append(out, r.Jt, r.Jf)
		out = binary.NativeEndian.AppendUint32(out, r.K)
	}
	return out, nil
})

// conditions refuse system calls with some arguments. They are our own and come first: in the library's, a call whose
// arguments are not those meant is compared on by its argument in place of its number.
func conditions(info *arch.Info) []bpf.Instruction {
	var program []bpf.Instruction
	program = append(program, refuse(info, "clone", 0, bpf.JumpBitsNotSet, newNamespaces)...)
	program = append(program, refuse(info, "ioctl", 1, bpf.JumpNotEqual, ioctlsDenied...)...)
	return append(program, refuse(info, "socket", 0, bpf.JumpNotEqual, familiesDenied...)...)
}

var (
	// ioctlsDenied type into a terminal that the program does not own.
	ioctlsDenied = []uint32{unix.TIOCSTI, unix.TIOCLINUX}
	// familiesDenied lead past the network namespace, or to large parts of the kernel.
	familiesDenied = []uint32{unix.AF_VSOCK, unix.AF_ALG, unix.AF_PACKET, unix.AF_BLUETOOTH, unix.AF_NFC, unix.AF_CAN,
		unix.AF_TIPC, unix.AF_RDS, unix.AF_XDP, unix.AF_KCM, unix.AF_QIPCRTR, unix.AF_SMC}
)

// refuse refuses a system call unless an argument, of which the kernel looks at 32 bits, passes the test for each value.
func refuse(info *arch.Info, name string, argument uint32, test bpf.JumpTest, values ...uint32) []bpf.Instruction {
	const number, arguments = 0, 16 // in struct seccomp_data; the machine is little-endian
	body := []bpf.Instruction{bpf.LoadAbsolute{Off: arguments + 8*argument, Size: 4}}
	for _, v := range values {
		body = append(body, bpf.JumpIf{Cond: test, Val: v, SkipTrue: 1},
			bpf.RetConstant{Val: uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.EPERM)})
	}
	return append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: number, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(info.SyscallNames[name]), SkipTrue: uint8(len(body))},
	}, body...)
}

func known(info *arch.Info, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, ok := info.SyscallNames[name]
		return !ok
	})
}

func allowed(info *arch.Info) []string {
	var names []string
	for name := range info.SyscallNames {
		if !slices.Contains(denied, name) && !slices.Contains(notThere, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
