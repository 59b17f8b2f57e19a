package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
)

// cgroupRoot is where cgroups are, by convention of everything that starts a Linux system.
const cgroupRoot = "/sys/fs/cgroup"

// cgroup limits what the processes of a cell use together. Its directories are below the daemon's own groups, so that the
// limits of that hold too.
type cgroup struct {
	dirs map[string]string // by controller: memory, pids, cpu; all the same directory in version 2
	v2   bool
}

// cgroupPrefix, the daemon's pid and a number are the name of a group.
const cgroupPrefix = "carrel-"

var cgroupNumber atomic.Uint64

// newCgroup makes the groups of a cell. It returns those that could be made, and an error that says which limits cannot be
// kept.
func newCgroup(root, self string, l execd.Limits) (*cgroup, error) {
	own, err := ownGroups(self)
	if err != nil {
		return &cgroup{}, err
	}
	g := &cgroup{dirs: map[string]string{}}
	name := fmt.Sprintf("%s%d-%d", cgroupPrefix, os.Getpid(), cgroupNumber.Add(1))
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		g.v2 = true
		return g, errors.Join(g.makeV2(root, own[""], name), g.limit(l))
	}
	// Only where there is a limit on processors is there a group for them: one more is time for each start, and each wake-up.
	controllers := []string{"memory", "pids"}
	if l.CPU > 0 {
		controllers = append(controllers, "cpu")
	}
	var errs []error
	for _, c := range controllers {
		if err := g.makeV1(root, c, own[c], name); err != nil {
			errs = append(errs, err)
		}
	}
	return g, errors.Join(append(errs, g.limit(l))...)
}

// ownGroups reads /proc/self/cgroup (cgroups(7)): the daemon's group in each hierarchy, by controller; that of version 2
// has none.
func ownGroups(file string) (map[string]string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	own := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			return nil, fmt.Errorf("%s: line %q: %w", file, line, vfs.ErrInvalid)
		}
		for _, c := range strings.Split(parts[1], ",") {
			own[c] = parts[2]
		}
	}
	return own, nil
}

func (g *cgroup) makeV1(root, controller, own, name string) error {
	parent := filepath.Join(root, controller, own)
	if _, err := os.Stat(parent); errors.Is(err, fs.ErrNotExist) {
		// In a container of another kind the path is that of its host, and the hierarchy begins with our own group.
		parent = filepath.Join(root, controller)
	}
	dir := filepath.Join(parent, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("no limit on %s: %w", controller, err)
	}
	g.dirs[controller] = dir
	return nil
}

// makeV2 makes a group beside the daemon's own: below it there can be none with limits while the daemon is in it. In the
// root group alone both can be.
func (g *cgroup) makeV2(root, own, name string) error {
	parent := filepath.Join(root, own)
	if own != "/" {
		parent = filepath.Dir(parent)
	}
	// It may be on already, and it may not be ours to turn on: what counts is what the new group then has.
	_ = os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+memory +pids +cpu"), 0)
	dir := filepath.Join(parent, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("no limits: %w", err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return errors.Join(fmt.Errorf("no limits: %w", err), os.Remove(dir))
	}
	var errs []error
	for _, c := range []string{"memory", "pids", "cpu"} {
		if !slices.Contains(strings.Fields(string(b)), c) {
			errs = append(errs, fmt.Errorf("no limit on %s: the group %s has no such controller: %w", c, dir, vfs.ErrNotSupported))
			continue
		}
		g.dirs[c] = dir
	}
	if len(g.dirs) == 0 {
		errs = append(errs, os.Remove(dir))
	}
	return errors.Join(errs...)
}

// removeAllLeft removes the groups of daemons that died from where this one makes its own.
func removeAllLeft(root, self string) {
	own, err := ownGroups(self)
	if err != nil {
		return // and none can be made either
	}
	for _, c := range []string{"memory", "pids", "cpu"} {
		removeLeft(filepath.Join(root, c, own[c]))
		removeLeft(filepath.Join(root, c))
	}
	removeLeft(filepath.Join(root, own[""]))
	removeLeft(filepath.Dir(filepath.Join(root, own[""])))
}

// removeLeft removes the groups of daemons that died. One in which something still runs, or is not ours, stays.
func removeLeft(parent string) {
	left, err := filepath.Glob(filepath.Join(parent, cgroupPrefix+"*-*"))
	if err != nil {
		return // the pattern is none, and there is none
	}
	for _, dir := range left {
		var pid, number int
		_, err := fmt.Sscanf(filepath.Base(dir), cgroupPrefix+"%d-%d", &pid, &number)
		if err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			_ = os.Remove(dir) // the kernel removes none that is in use
		}
	}
}

// cpuPeriod is the default of both versions, in microseconds.
const cpuPeriod = 100_000

// limit writes the limits down, where there is a group for them.
func (g *cgroup) limit(l execd.Limits) error {
	var errs []error
	quota := strconv.Itoa(int(l.CPU) * cpuPeriod / 1000)
	memory := strconv.FormatUint(l.Memory, 10)
	if g.v2 {
		errs = append(errs, g.write("memory", "memory.max", memory), g.write("pids", "pids.max", strconv.Itoa(int(l.Pids))))
		if l.CPU > 0 {
			errs = append(errs, g.write("cpu", "cpu.max", quota+" "+strconv.Itoa(cpuPeriod)))
		}
		_ = g.write("memory", "memory.swap.max", "0") // there is no such file without swap
		return errors.Join(errs...)
	}
	errs = append(errs, g.write("memory", "memory.limit_in_bytes", memory), g.write("pids", "pids.max", strconv.Itoa(int(l.Pids))))
	if l.CPU > 0 {
		errs = append(errs, g.write("cpu", "cpu.cfs_period_us", strconv.Itoa(cpuPeriod)), g.write("cpu", "cpu.cfs_quota_us", quota))
	}
	_ = g.write("memory", "memory.memsw.limit_in_bytes", memory) // likewise
	return errors.Join(errs...)
}

func (g *cgroup) write(controller, file, value string) error {
	dir := g.dirs[controller]
	if dir == "" {
		return nil
	}
	// Not os.WriteFile, which would make a file where there is no such group.
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// join puts a process into the groups, and with it all that it starts.
func (g *cgroup) join(pid int) error {
	var errs []error
	for _, controller := range g.controllers() {
		errs = append(errs, g.write(controller, "cgroup.procs", strconv.Itoa(pid)))
	}
	return errors.Join(errs...)
}

// controllers are those of which each stands for another directory.
func (g *cgroup) controllers() []string {
	var list []string
	for c := range g.dirs {
		if !slices.ContainsFunc(list, func(x string) bool { return g.dirs[x] == g.dirs[c] }) {
			list = append(list, c)
		}
	}
	return list
}

// has reports whether there is a limit of that kind.
func (g *cgroup) has(controller string) bool { return g.dirs[controller] != "" }

// oomKills returns how many processes were killed because all of them together used more memory than they may.
func (g *cgroup) oomKills() uint64 {
	file := "memory.oom_control"
	if g.v2 {
		file = "memory.events"
	}
	b, err := os.ReadFile(filepath.Join(g.dirs["memory"], file))
	if !g.has("memory") || err != nil {
		return 0
	}
	for _, line := range strings.Split(string(b), "\n") {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			count, _ := strconv.ParseUint(n, 10, 64) // the kernel's own
			return count
		}
	}
	return 0
}

// removal of a group fails for a moment after the last process in it has died.
const (
	removeTries = 50
	removeEvery = 10 * time.Millisecond
)

// remove takes the groups away, once nothing runs in them.
func (g *cgroup) remove() error {
	var errs []error
	for _, controller := range g.controllers() {
		var err error
		for range removeTries {
			if err = os.Remove(g.dirs[controller]); err == nil || errors.Is(err, fs.ErrNotExist) {
				err = nil
				break
			}
			time.Sleep(removeEvery)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
