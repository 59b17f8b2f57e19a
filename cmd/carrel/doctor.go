package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/cmd/carrel/daemon"
	"github.com/carrelfs/carrel/fusefs"
)

// leastKernel is the oldest kernel that has all that the mount asks for: caching of directories and symlinks (4.20).
var leastKernel = [2]int{4, 20}

// leastFree is the free space below which doctor warns, in bytes: enough for the reserve of a large disk and some work.
const leastFree = 1 << 30

func (p *program) doctorCommand() *cli.Command {
	return &cli.Command{
		Name:        "doctor",
		Usage:       "say what this machine lacks, and the command that mends it",
		Description: "The exit status is 1 when something is missing that a mount needs.",
		Flags:       []cli.Flag{storeFlag(), &cli.BoolFlag{Name: "json", Usage: "print one JSON object per line"}},
		Action:      p.doctor,
	}
}

// finding is what doctor has to say about one thing.
type finding struct {
	What   string `json:"what"`
	State  state  `json:"state"`
	Detail string `json:"detail"`
	Mend   string `json:"mend,omitempty"` // a command, or what else to do
}

type state string

const (
	stateOK      state = "ok"
	stateWarning state = "warning" // works, with less
	stateMissing state = "missing" // a mount needs it
)

func (p *program) doctor(c *cli.Context) error {
	if _, err := arguments(c, 0, 0); err != nil {
		return err
	}
	dir, err := storeDir(c)
	if err != nil {
		return err
	}
	findings := []finding{checkDevice(), checkRights(), checkKernel(), checkStore(c.Context, dir), checkSpace(dir)}
	findings = append(findings, checkMounts()...)
	missing := false
	for _, f := range findings {
		missing = missing || f.State == stateMissing
		if err := p.printFinding(f, c.Bool("json")); err != nil {
			return err
		}
	}
	if missing {
		return errQuiet
	}
	return nil
}

func (p *program) printFinding(f finding, asJSON bool) error {
	if asJSON {
		return p.printJSON(f)
	}
	_, err := fmt.Fprintf(p.stdout, "%-8s %s: %s\n", f.State, f.What, f.Detail)
	if err == nil && f.Mend != "" {
		_, err = fmt.Fprintf(p.stdout, "         mend it: %s\n", f.Mend)
	}
	return err
}

func checkDevice() finding {
	f := finding{What: "/dev/fuse", State: stateMissing}
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	switch {
	case err == nil:
		_ = unix.Close(fd) // nothing was done with it
		return finding{What: "/dev/fuse", State: stateOK, Detail: "can be opened"}
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		f.Detail = "the kernel's FUSE module is not loaded, or this is a container without the device"
		f.Mend = "modprobe fuse (on the host); for a container: docker run --device /dev/fuse --cap-add SYS_ADMIN ..."
	default:
		f.Detail = err.Error()
		f.Mend = "chmod 0666 /dev/fuse"
	}
	return f
}

// checkRights is about who may call mount(2): root with its capability, everybody else through fusermount3.
func checkRights() finding {
	f := finding{What: "the right to mount", State: stateOK}
	if os.Geteuid() == 0 {
		f.Detail = "root"
		if !hasCapability(unix.CAP_SYS_ADMIN) {
			f.State, f.Detail = stateMissing, "root without CAP_SYS_ADMIN, as in a container"
			f.Mend = "docker run --device /dev/fuse --cap-add SYS_ADMIN ..."
		}
		return f
	}
	path, err := exec.LookPath("fusermount3")
	if err != nil {
		f.State, f.Detail, f.Mend = stateMissing, "an ordinary user needs fusermount3", "apt-get install fuse3"
		return f
	}
	f.Detail = path
	if conf, err := os.ReadFile("/etc/fuse.conf"); err != nil || !hasLine(string(conf), "user_allow_other") {
		f.State, f.Detail = stateWarning, path+"; --allow-other is not permitted to ordinary users"
		f.Mend = "echo user_allow_other >> /etc/fuse.conf (as root)"
	}
	return f
}

func hasLine(text, want string) bool {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == want {
			return true
		}
	}
	return false
}

// hasCapability looks at the effective set (proc_pid_status(5)).
func hasCapability(bit uint) bool {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		if hex, ok := strings.CutPrefix(line, "CapEff:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
			return err == nil && set&(1<<bit) != 0
		}
	}
	return false
}

func checkKernel() finding {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return finding{"kernel", stateWarning, err.Error(), ""}
	}
	release := unix.ByteSliceToString(u.Release[:])
	var major, minor int
	_, err := fmt.Sscanf(release, "%d.%d", &major, &minor)
	if err != nil || major < leastKernel[0] || major == leastKernel[0] && minor < leastKernel[1] {
		return finding{
			"kernel", stateWarning, release + " is older than what carrel is made for",
			fmt.Sprintf("use Linux %d.%d or later", leastKernel[0], leastKernel[1]),
		}
	}
	return finding{"kernel", stateOK, release, ""}
}

func checkStore(ctx context.Context, dir string) finding {
	f := finding{What: "store", State: stateOK, Detail: dir}
	c, err := control.Dial(ctx, dir)
	if err == nil {
		f.Detail += fmt.Sprintf(", opened by process %d", c.Owner().PID)
		_ = c.Close() // nothing was done through it
		return f
	}
	if !errors.Is(err, control.ErrNoOwner) {
		return finding{f.What, stateWarning, err.Error(), advice(err)}
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		f.Detail += " is made on first use"
	}
	return f
}

func checkSpace(dir string) finding {
	f := finding{What: "free space", State: stateOK}
	var st unix.Statfs_t
	at := dir
	for unix.Statfs(at, &st) != nil {
		if at == "/" || at == "." {
			return finding{f.What, stateWarning, "cannot be found out for " + dir, ""}
		}
		at = parentPath(at)
	}
	free := st.Bavail * uint64(st.Bsize)
	f.Detail = humanize.IBytes(free) + " on the store's disk"
	if free < leastFree {
		f.State = stateWarning
		f.Mend = "make room on the disk, or move the store; 'carrel gc' frees what was deleted in workspaces"
	}
	return f
}

// checkMounts says what is mounted, and finds dead mounts.
func checkMounts() []finding {
	entries, err := daemon.Entries()
	if err != nil {
		return []finding{{"mounts", stateWarning, err.Error(), ""}}
	}
	var findings []finding
	for _, e := range entries {
		if !e.Ours() {
			continue
		}
		workspace, store := e.Workspace()
		f := finding{What: "mount " + e.Dir, State: stateOK}
		f.Detail = fmt.Sprintf("workspace %s of the store %s", workspace, store)
		if dead, err := fusefs.IsDead(e.Dir); err == nil && dead {
			f.State, f.Detail, f.Mend = stateWarning, "dead: its daemon has ended", "carrel umount "+e.Dir
		}
		findings = append(findings, f)
	}
	return findings
}
