package launch

import (
	"errors"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// running is the program that a process runs, wherever the root is by then.
const running = "/proc/self/exe"

// self is the program that inner is started from.
var self = running

// protectSelf has inner started from where nobody can write this program. A command can have it run: by a script whose
// interpreter is /proc/self/exe, which is inner's program at that moment. Then it finds the program's file in /proc, past
// all mounts that hide it, and may write it as soon as nothing runs from it: when the daemon has ended.
func protectSelf() error {
	fd, err := ownTree()
	if err != nil { // the program has been replaced, or is in no directory that is seen from here
		fd, err = ownCopy()
	}
	if err == nil {
		self = "/proc/self/fd/" + strconv.Itoa(fd)
	}
	return err
}

// ownTree returns a read-only mount of this program.
func ownTree() (int, error) {
	path, err := os.Readlink(running)
	if err != nil {
		return -1, err
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, err
	}
	var there, own unix.Stat_t
	err = errors.Join(unix.Fstat(tree, &there), unix.Stat(running, &own))
	if err == nil && (there.Dev != own.Dev || there.Ino != own.Ino) {
		err = unix.ENOENT
	}
	if err == nil {
		err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(tree))
	}
	return tree, nil
}

// ownCopy returns a copy of this program in memory that nobody can change any more (memfd_create(2)).
func ownCopy() (int, error) {
	from, err := os.Open(running)
	if err != nil {
		return -1, err
	}
	defer from.Close() // only read
	fd, err := unix.MemfdCreate("carrel", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, err
	}
	to := os.NewFile(uintptr(fd), "copy")
	defer to.Close() // it is in memory
	if _, err := io.Copy(to, from); err != nil {
		return -1, err
	}
	seals := unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return -1, err
	}
	// What is open for writing cannot be run.
	return unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
}
