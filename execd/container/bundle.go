package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/container/launch"
)

// bundle is what an OCI runtime is given: config.json, which says the same as a Setup and its Restrictions do, and a root
// filesystem with nothing but directories and symlinks, on which everything is mounted. Beside them are what the runtime
// keeps of its container (state), what it says of itself (log), and its name, for who finds all that later.
//
//	DIR/config.json
//	DIR/rootfs/
//	DIR/state/      --root of the runtime
//	DIR/log         JSON, a line each
//	DIR/runtime     path of the program, and flags, a line each
type bundle struct {
	dir     string
	id      string   // of the container
	runtime []string // its program, and flags for each call of it
}

func (b bundle) path(name string) string { return filepath.Join(b.dir, name) }

// makeBundle writes the bundle of an exec. limits are those of the container as a whole, or nil.
func makeBundle(
	parent, program string, key cellKey, mount string, limits *specs.LinuxResources, j execd.Job,
) (b bundle, err error) {
	b.runtime = []string{program}
	if limits == nil && filepath.Base(program) == "crun" {
		b.runtime = append(b.runtime, "--cgroup-manager=disabled") // it would fail, where runc does without
	}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return b, err
	}
	if b.dir, err = os.MkdirTemp(parent, ""); err != nil {
		return b, err
	}
	b.id = fmt.Sprintf("%s%d-%d", cgroupPrefix, os.Getpid(), cgroupNumber.Add(1))
	setup, err := setupFor(key.root, mount, key.hostNet)
	if err != nil {
		return b, err
	}
	spec := specOf(setup, key, limits == nil, j)
	spec.Linux.Resources = limits
	if limits != nil {
		spec.Linux.CgroupsPath = "/" + b.id
	}
	config, err := json.Marshal(spec)
	if err != nil {
		return b, err
	}
	return b, errors.Join(
		b.fill(setup), os.Mkdir(b.path("state"), 0o700), os.WriteFile(b.path("runtime"), []byte(strings.Join(b.runtime, "\n")), 0o600),
		os.WriteFile(b.path("config.json"), config, 0o600),
	)
}

// fill makes the root filesystem.
func (b bundle) fill(s launch.Setup) error {
	root := b.path("rootfs")
	for _, dir := range append([]string{"/"}, s.Dirs...) {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	for _, l := range s.Links {
		if err := os.Symlink(l.Target, filepath.Join(root, l.Name)); err != nil {
			return err
		}
	}
	return nil
}

// specOf is a Setup as OCI says it. each says that what the container as a whole is not limited to, each process is.
func specOf(s launch.Setup, key cellKey, each bool, j execd.Job) *specs.Spec {
	dir := path.Join(workspaceDir, j.Dir)
	capabilities := slices.Sorted(maps.Keys(kept))
	spec := &specs.Spec{
		Version: "1.0.2", Hostname: s.Hostname, Root: &specs.Root{Path: "rootfs", Readonly: true}, Mounts: mountsOf(s),
		Process: &specs.Process{
			Terminal: j.TTY != nil, Args: j.Args, Env: environment(j.Env, dir, j.TTY != nil), Cwd: dir, NoNewPrivileges: true,
			Capabilities: &specs.LinuxCapabilities{Bounding: capabilities, Effective: capabilities, Permitted: capabilities},
			Rlimits:      rlimitsOf(key, each),
		},
		Linux: &specs.Linux{Namespaces: namespacesOf(key), Seccomp: seccompProfile()},
	}
	for _, name := range launch.ProcHidden {
		spec.Linux.MaskedPaths = append(spec.Linux.MaskedPaths, "/proc/"+name)
	}
	if j.TTY != nil {
		spec.Process.ConsoleSize = &specs.Box{Height: uint(j.TTY.Rows), Width: uint(j.TTY.Cols)}
	}
	for _, b := range s.Binds {
		if b.Source == hidden {
			spec.Linux.MaskedPaths = append(spec.Linux.MaskedPaths, b.Target)
		}
	}
	for _, name := range launch.ProcReadOnly {
		spec.Linux.ReadonlyPaths = append(spec.Linux.ReadonlyPaths, "/proc/"+name)
	}
	if rootless() {
		spec.Linux.UIDMappings = []specs.LinuxIDMapping{{HostID: uint32(os.Geteuid()), Size: 1}}
		spec.Linux.GIDMappings = []specs.LinuxIDMapping{{HostID: uint32(os.Getegid()), Size: 1}}
	}
	return spec
}

func namespacesOf(key cellKey) (list []specs.LinuxNamespace) {
	types := []specs.LinuxNamespaceType{specs.MountNamespace, specs.PIDNamespace, specs.IPCNamespace, specs.UTSNamespace, specs.CgroupNamespace}
	if !key.hostNet {
		types = append(types, specs.NetworkNamespace)
	}
	if rootless() {
		types = append(types, specs.UserNamespace)
	}
	for _, t := range types {
		list = append(list, specs.LinuxNamespace{Type: t})
	}
	return list
}

// mountsOf is what is mounted, in order: what a container has of its own before what is bound, which may be in it.
func mountsOf(s launch.Setup) []specs.Mount {
	list := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "nodev", "noexec"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}},
		memoryMount("/dev/shm", 0o1777, launch.ShmSize),
	}
	for _, b := range s.Binds {
		if b.Source == hidden {
			continue // it is a masked path
		}
		info, err := os.Stat(b.Source)
		if err != nil && b.Optional {
			continue // this machine has none
		}
		mode := "ro"
		if b.Writable {
			mode = "rw"
		}
		options := []string{"bind", mode, "nosuid", "nodev", "rprivate"}
		if err != nil || info.IsDir() { // what is mounted in it is the same; of a file, crun wants a directory for that
			options = append(options, "rbind", "r"+mode, "rnosuid", "rnodev")
		}
		list = append(list, specs.Mount{Destination: b.Target, Type: "bind", Source: b.Source, Options: options})
	}
	for _, t := range s.Tmpfs {
		list = append(list, memoryMount(t.Target, t.Mode, t.Size))
	}
	return list
}

func memoryMount(target string, mode uint32, size uint64) specs.Mount {
	return specs.Mount{Destination: target, Type: "tmpfs", Source: "tmpfs", Options: []string{
		"nosuid", "nodev", fmt.Sprintf("mode=%o", mode), fmt.Sprintf("size=%d", size),
	}}
}

// groupLimits are those of the container as a whole: an error where this process may not write cgroups, which it finds out by
// making one.
func groupLimits(l execd.Limits) (*specs.LinuxResources, error) {
	g, err := newCgroup(cgroupRoot, "/proc/self/cgroup", l)
	if err = errors.Join(err, g.remove()); err != nil {
		return nil, err
	}
	memory := int64(l.Memory)
	r := &specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &memory}, Pids: &specs.LinuxPids{Limit: int64(l.Pids)}}
	if l.CPU > 0 {
		period, quota := uint64(cpuPeriod), int64(l.CPU)*cpuPeriod/1000
		r.CPU = &specs.LinuxCPU{Quota: &quota, Period: &period}
	}
	return r, nil
}

// rlimitsOf are those of each process (getrlimit(2)).
func rlimitsOf(key cellKey, each bool) []specs.POSIXRlimit {
	list := []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Soft: openFiles(), Hard: openFiles()}, {Type: "RLIMIT_CORE"}}
	if each {
		list = append(list, specs.POSIXRlimit{Type: "RLIMIT_AS", Soft: key.limits.Memory, Hard: key.limits.Memory},
			specs.POSIXRlimit{Type: "RLIMIT_NPROC", Soft: uint64(key.limits.Pids), Hard: uint64(key.limits.Pids)})
	}
	return list
}

// openFiles is how many files a process may have open.
func openFiles() uint64 {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return maxFiles
	}
	return min(files.Max, maxFiles)
}

// seccompProfile is the filter as OCI says it, which has no words for all of it: system calls that this program does not know
// are allowed, because a rule for some arguments of a call cannot make exceptions of one that allows it.
func seccompProfile() *specs.LinuxSeccomp {
	info, err := arch.GetInfo("")
	name, ok := seccompArch[runtime.GOARCH]
	if err != nil || !ok {
		return nil // the backend itself does not start a command there
	}
	eperm, enosys := uint(unix.EPERM), uint(unix.ENOSYS)
	rule := func(errno *uint, args []specs.LinuxSeccompArg, names ...string) specs.LinuxSyscall {
		return specs.LinuxSyscall{Names: names, Action: specs.ActErrno, ErrnoRet: errno, Args: args}
	}
	p := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Architectures: []specs.Arch{name}}
	p.Syscalls = append(p.Syscalls, rule(&eperm, nil, known(info, denied)...), rule(&enosys, nil, notThere...))
	for bit := uint64(1); bit <= newNamespaces; bit <<= 1 {
		if bit&newNamespaces != 0 {
			p.Syscalls = append(p.Syscalls, rule(&eperm, argument(0, bit, bit), "clone"))
		}
	}
	const whole = 1<<32 - 1 // the kernel looks at 32 bits
	for _, request := range ioctlsDenied {
		p.Syscalls = append(p.Syscalls, rule(&eperm, argument(1, whole, uint64(request)), "ioctl"))
	}
	for _, family := range familiesDenied {
		p.Syscalls = append(p.Syscalls, rule(&eperm, argument(0, whole, uint64(family)), "socket"))
	}
	return p
}

var seccompArch = map[string]specs.Arch{"amd64": specs.ArchX86_64, "arm64": specs.ArchAARCH64}

// argument is a test of some bits of an argument.
func argument(index uint, mask, value uint64) []specs.LinuxSeccompArg {
	return []specs.LinuxSeccompArg{{Index: index, Value: mask, ValueTwo: value, Op: specs.OpMaskedEqual}}
}

// remove removes the bundle, unless something is mounted there: what that leads to is not ours to remove.
func (b bundle) remove() error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	if strings.Contains(string(mounts), b.dir+"/") {
		return fmt.Errorf("something is mounted in %s, which stays", b.dir)
	}
	return os.RemoveAll(b.dir)
}

// removeBundles ends what runtimes still run of a daemon that died, and removes it.
func removeBundles(parent string, log *slog.Logger) {
	entries, _ := os.ReadDir(parent) // there is none yet
	for _, e := range entries {
		b := bundle{dir: filepath.Join(parent, e.Name())}
		said, err := os.ReadFile(b.path("runtime"))
		if err == nil {
			b.runtime = strings.Split(string(said), "\n")
			err = b.endAll()
		} else if errors.Is(err, os.ErrNotExist) {
			err = nil // it was not begun
		}
		if err := errors.Join(err, b.remove()); err != nil {
			log.Warn("a container of a daemon before this one stays", "dir", b.dir, "err", err)
		}
	}
}

// endAll ends the containers that the runtime has a state of.
func (b bundle) endAll() error {
	containers, err := os.ReadDir(b.path("state"))
	if errors.Is(err, os.ErrNotExist) {
		return nil // the bundle is not whole
	}
	errs := []error{err}
	for _, c := range containers {
		if c.IsDir() {
			errs = append(errs, b.call("delete", "--force", c.Name()))
		}
	}
	return errors.Join(errs...)
}
