package launch

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// restrict takes from the calling thread, and so from what it starts, all that the command is not to have. There is no
// way back. The caller has locked the thread.
func (r *Restrictions) restrict() (step string, err error) {
	for _, l := range r.Limits {
		limit := unix.Rlimit{Cur: l.Max, Max: l.Max}
		if err := unix.Setrlimit(l.Resource, &limit); err != nil {
			return fmt.Sprintf("limit resource %d", l.Resource), err
		}
	}
	if err := dropBounding(r.Caps); err != nil {
		return "drop capabilities for good", err
	}
	if err := setCaps(r.Caps); err != nil {
		return "drop capabilities", err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return "refuse new privileges", err
	}
	if err := setFilter(r.Filter); err != nil {
		return "filter system calls", err
	}
	return "", nil
}

// dropBounding drops all but keep from the bounding set: no program that is started later can have them.
func dropBounding(keep uint64) error {
	for n := uintptr(0); n < 64; n++ {
		if keep&(1<<n) != 0 {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, n, 0, 0, 0)
		if err == unix.EINVAL {
			return nil // this kernel knows no more
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func setCaps(keep uint64) error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now [2]unix.CapUserData
	if err := unix.Capget(&header, &now[0]); err != nil {
		return err
	}
	var data [2]unix.CapUserData
	for i := range data {
		have := uint32(keep>>(32*i)) & now[i].Permitted
		data[i] = unix.CapUserData{Effective: have, Permitted: have}
	}
	return unix.Capset(&header, &data[0])
}

// setFilter installs a program of struct sock_filter, as bytes.
func setFilter(filter []byte) error {
	const size = unix.SizeofSockFilter
	if len(filter) == 0 || len(filter)%size != 0 {
		return unix.EINVAL
	}
	program := unix.SockFprog{Len: uint16(len(filter) / size), Filter: (*unix.SockFilter)(unsafe.Pointer(&filter[0]))}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}
