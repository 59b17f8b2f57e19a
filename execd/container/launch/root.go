package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Where the old and the new root are while the new one is built: both in a tmpfs that covers a directory which every
// host has.
const (
	stage   = "/tmp"
	oldRoot = "/old"
	newRoot = "/new"
)

// buildRoot makes a root filesystem of a tmpfs, and moves into it. What it is made of is reached through the old root,
// where nothing of the new one covers it.
func (s *Setup) buildRoot() (step string, err error) {
	for _, do := range []struct {
		step string
		f    func() error
	}{
		{"keep mounts to this container", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }},
		{"mount a stage", enterStage},
		{"mount the root", func() error { return mountTmpfs(newRoot, 0o755, 16<<20) }},
		{"make directories", func() error { return makeDirs(s.Dirs) }},
		{"make links", s.makeLinks},
		{"bind", s.bind},
		{"mount memory", s.mountTmpfs},
		{"mount /proc", func() error { return mountProc(newRoot + "/proc") }},
		{"make /dev", makeDev},
		{"enter the root", enterRoot},
	} {
		if err := do.f(); err != nil {
			return fmt.Sprintf("%s (%v)", do.step, err), err
		}
	}
	return "", nil
}

// enterStage makes a tmpfs the root, with the host's root in it.
func enterStage() error {
	if err := mountTmpfs(stage, 0o755, 1<<20); err != nil {
		return err
	}
	if err := makeAll(stage+oldRoot, stage+newRoot); err != nil {
		return err
	}
	if err := unix.PivotRoot(stage, stage+oldRoot); err != nil {
		return err
	}
	return unix.Chdir("/")
}

// enterRoot makes the new root the only one there is, and read-only.
func enterRoot() error {
	if err := unix.Chdir(newRoot); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil { // the stage is now on top of the new root
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	if err := setAttr("/", unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, 0); err != nil {
		return err
	}
	// What is mounted here later is to be seen by what was started before (mount_namespaces(7)). Other mounts stay private:
	// nothing that a runner mounts, which is all below /proc, comes here.
	return unix.Mount("", "/", "", unix.MS_SHARED, "")
}

func mountTmpfs(target string, mode uint32, size uint64) error {
	return unix.Mount("tmpfs", target, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("mode=%o,size=%d", mode, size))
}

func mountProc(target string) error {
	return unix.Mount("proc", target, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

func setAttr(target string, set uint64, flags uint) error {
	return unix.MountSetattr(unix.AT_FDCWD, target, flags, &unix.MountAttr{Attr_set: set})
}

func makeAll(dirs ...string) error {
	for _, dir := range dirs {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

func makeDirs(dirs []string) error {
	for _, dir := range dirs {
		if err := os.MkdirAll(newRoot+dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func (s *Setup) makeLinks() error {
	for _, l := range s.Links {
		if err := os.Symlink(l.Target, newRoot+l.Name); err != nil {
			return err
		}
	}
	return nil
}

func (s *Setup) mountTmpfs() error {
	for _, t := range s.Tmpfs {
		if err := mountTmpfs(newRoot+t.Target, t.Mode, t.Size); err != nil {
			return fmt.Errorf("%s: %w", t.Target, err)
		}
	}
	return nil
}

func (s *Setup) bind() error {
	for _, b := range s.Binds {
		if err := b.make(); err != nil {
			return fmt.Errorf("%s: %w", b.Source, err)
		}
	}
	return nil
}

// make mounts b. The tree is taken before its flags are set and put in its place after, so that it is never there without
// them.
func (b Bind) make() error {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE)
	tree, err := unix.OpenTree(unix.AT_FDCWD, oldRoot+b.Source, flags)
	if errors.Is(err, unix.ENOENT) && b.Optional {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(b.place(tree), unix.Close(tree))
}

func (b Bind) place(tree int) error {
	point, err := openPoint(tree, b.Target)
	if err != nil {
		if b.Optional {
			return nil
		}
		return err
	}
	return errors.Join(b.move(tree, point), unix.Close(point))
}

// move puts a tree on a directory or file that is open.
func (b Bind) move(tree, point int) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID, Propagation: unix.MS_PRIVATE}
	if !b.Writable {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if !b.Devices {
		attr.Attr_set |= unix.MOUNT_ATTR_NODEV
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", point, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// openPoint opens what a tree is mounted on, a directory or an empty file, and makes it when there is none.
func openPoint(tree int, target string) (int, error) {
	var st unix.Stat_t
	if err := unix.Fstat(tree, &st); err != nil {
		return -1, err
	}
	root, err := unix.Open(newRoot, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root) // an O_PATH descriptor has nothing to lose
	return openIn(root, target, st.Mode&unix.S_IFMT == unix.S_IFDIR)
}

// openIn opens a directory or file in a root. The root may be somebody else's, and the host's own is still there: a symlink
// leads to what is in the root, and nothing is made through one that leads nowhere.
func openIn(root int, path string, dir bool) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(root, path, &how)
	if !errors.Is(err, unix.ENOENT) || path == "/" {
		return fd, err
	}
	parent, err := openIn(root, filepath.Dir(path), true)
	if err != nil {
		return -1, err
	}
	defer unix.Close(parent) // likewise
	name := filepath.Base(path)
	if dir {
		err = unix.Mkdirat(parent, name, 0o755)
	} else {
		err = unix.Mknodat(parent, name, unix.S_IFREG|0o644, 0)
	}
	if err != nil {
		return -1, err
	}
	return unix.Openat2(root, path, &how)
}

// makeDev makes a /dev with what programs need and nothing that leads to a device of the machine.
func makeDev() error {
	dev := newRoot + "/dev"
	if err := mountTmpfs(dev, 0o755, 64<<10); err != nil {
		return err
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		b := Bind{Source: "/dev/" + name, Target: "/dev/" + name, Writable: true, Devices: true}
		if err := b.make(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := makeAll(dev+"/pts", dev+"/shm"); err != nil {
		return err
	}
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
		"ptmx": "pts/ptmx",
	} {
		if err := os.Symlink(target, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	if err := mountTmpfs(dev+"/shm", 0o1777, ShmSize); err != nil {
		return err
	}
	options := "newinstance,ptmxmode=0666,mode=0620"
	if err := unix.Mount("devpts", dev+"/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, options); err != nil {
		return fmt.Errorf("pts: %w", err)
	}
	return setAttr(dev, unix.MOUNT_ATTR_RDONLY, 0)
}

// ShmSize bounds the shared memory of a container, in bytes.
const ShmSize = 1 << 30

// What of /proc tells of the machine, or acts on it.
var (
	// ProcReadOnly can only be read.
	ProcReadOnly = strings.Fields("sys bus fs irq tty sysrq-trigger")
	// ProcHidden is not there at all.
	ProcHidden = strings.Fields("acpi asound kcore keys kmsg latency_stats timer_list timer_stats sched_debug scsi " +
		"kpagecount kpageflags kpagecgroup vmallocinfo slabinfo pagetypeinfo key-users")
)

// ownProc mounts the /proc of an exec's pid namespace over that of the container, and covers what must not be seen.
func ownProc() error {
	if err := mountProc("/proc"); err != nil {
		return err
	}
	for _, name := range ProcReadOnly {
		if err := cover("/proc/"+name, "/proc/"+name); err != nil {
			return err
		}
	}
	for _, name := range ProcHidden {
		if err := cover("/dev/null", "/proc/"+name); err != nil {
			return err
		}
	}
	return nil
}

// cover mounts source read-only on target, when there is one. A directory is covered by an empty one.
func cover(source, target string) error {
	var st unix.Stat_t
	if err := unix.Lstat(target, &st); err != nil {
		return nil // this kernel has no such file
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR && source != target {
		return unix.Mount("tmpfs", target, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=0,mode=555")
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return setAttr(target, unix.MOUNT_ATTR_RDONLY, 0)
}
