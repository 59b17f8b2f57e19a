package fusefs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"bazil.org/fuse"
	"golang.org/x/sys/unix"
)

// The library mounts by running a program called fusermount3, which passes it the descriptor of /dev/fuse over a
// socket. That program is set-user-ID and has to be installed. Root needs neither: for the time of the call PATH
// begins with a private directory, in which fusermount3 is a symlink to this very program, and [HelperMain] does the
// work of it.

const (
	helperName = "fusermount3"
	// commfdEnv names the socket to the helper, as the library sets it.
	commfdEnv = "_FUSE_COMMFD"
	// helperErrorEnv names a file to which the helper writes the errno of what failed, and its text. The library keeps
	// only the exit status.
	helperErrorEnv = "CARREL_FUSE_HELPER_ERROR"
)

var (
	helperReady atomic.Bool // HelperMain has been called
	mountMu     sync.Mutex  // guards the environment while it is changed
)

// HelperMain must be the first call of main (and of TestMain) in every program that mounts. In a process that is
// this program's own mount helper it does the mount and exits; in any other it returns at once.
func HelperMain() {
	helperReady.Store(true)
	if filepath.Base(os.Args[0]) != helperName || os.Getenv(commfdEnv) == "" {
		return
	}
	if err := helper(os.Args[1:]); err != nil {
		reportHelperError(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// reportHelperError writes err to where helperFailure reads it, else to stderr, which ends in the log.
func reportHelperError(err error) {
	var errno syscall.Errno
	errors.As(err, &errno)
	file := os.Getenv(helperErrorEnv)
	if file == "" || os.WriteFile(file, fmt.Appendf(nil, "%d %v", int(errno), err), 0o600) != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// mountBySelf is for root when our own INIT is not possible. The helper does the mount.
func mountBySelf(dir string, options []fuse.MountOption) (*fuse.Conn, error) {
	fail := func(err error, advice string) (*fuse.Conn, error) {
		return nil, &MountError{Op: "mount", Dir: dir, Err: err, Advice: advice}
	}
	if !helperReady.Load() {
		return fail(errors.New("HelperMain was not called"), "it must be the first call of main")
	}
	private, err := privateDir(dir)
	if err != nil {
		return fail(err, "")
	}
	defer os.RemoveAll(private)
	errorFile := filepath.Join(private, "error")
	var conn *fuse.Conn
	err = withHelper(private, helperErrorEnv, errorFile, func() (err error) {
		conn, err = fuse.Mount(dir, options...)
		return err
	})
	if err != nil {
		return fail(helperFailure(errorFile, err))
	}
	return conn, nil
}

// withHelper calls f while this program is what PATH has for fusermount3, by a symlink in a directory of our own, and
// name is set in the environment.
func withHelper(private, name, value string, f func() error) error {
	if err := os.Symlink("/proc/self/exe", filepath.Join(private, helperName)); err != nil {
		return err
	}
	mountMu.Lock()
	defer mountMu.Unlock()
	defer setenv("PATH", private+":"+os.Getenv("PATH"))()
	defer setenv(name, value)()
	return f()
}

// privateDir makes a directory of our own, before dir is mounted on, and not below it: there it would be asked of the
// mount, which is not served yet. Where the system is read-only, there may be no place for temporary files.
func privateDir(dir string) (string, error) {
	err := errors.New("there is no place for a private directory")
	for _, parent := range [...]string{os.TempDir(), "/run", "/dev/shm"} {
		real, linkErr := filepath.EvalSymlinks(parent)
		if linkErr != nil || real == dir || strings.HasPrefix(real, dir+"/") {
			continue
		}
		var private string
		if private, err = os.MkdirTemp(real, "carrel-mount-"); err == nil {
			return private, nil
		}
	}
	return "", err
}

// setenv sets a variable of the environment and returns what undoes it.
func setenv(name, value string) (restore func()) {
	old, had := os.LookupEnv(name)
	os.Setenv(name, value)
	return func() {
		if had {
			os.Setenv(name, old)
		} else {
			os.Unsetenv(name)
		}
	}
}

// helperFailure makes what the helper has written into an error and advice; without it, what the library said.
func helperFailure(file string, err error) (error, string) {
	text, readErr := os.ReadFile(file)
	if readErr != nil {
		return err, ""
	}
	number, what, _ := strings.Cut(string(text), " ")
	n, convErr := strconv.Atoi(number)
	if convErr != nil || n == 0 {
		return errors.New(what), ""
	}
	return advise(syscall.Errno(n), what)
}

// mountAdvice takes an error of mountOptions.mount apart, into the errno, and what failed and what to do.
func mountAdvice(err error) (error, string) {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return err, ""
	}
	return advise(errno, err.Error())
}

func advise(errno syscall.Errno, what string) (error, string) {
	switch errno {
	case syscall.EPERM, syscall.EACCES:
		return errno, what + "; mounting needs CAP_SYS_ADMIN and access to /dev/fuse"
	case syscall.ENOENT, syscall.ENXIO, syscall.ENODEV:
		return errno, what + "; load the kernel module fuse, or give the container the device /dev/fuse"
	}
	return errno, what
}

// mountByFusermount is for everyone else.
func mountByFusermount(dir string, options []fuse.MountOption) (*fuse.Conn, error) {
	if _, err := exec.LookPath(helperName); err != nil {
		return nil, &MountError{Op: "mount", Dir: dir, Err: err, Advice: installAdvice}
	}
	mountMu.Lock() // another goroutine may have put itself in fusermount3's place
	defer mountMu.Unlock()
	conn, err := fuse.Mount(dir, options...)
	if err != nil {
		return nil, &MountError{Op: "mount", Dir: dir, Err: err,
			Advice: "allow_other needs user_allow_other in /etc/fuse.conf; the directory must be yours"}
	}
	return conn, nil
}

const installAdvice = "only root can mount without fusermount3; install the package fuse3"

// helper does what fusermount3 does for "-o OPTIONS -- DIR".
func helper(args []string) error {
	if len(args) != 4 || args[0] != "-o" || args[2] != "--" {
		return fmt.Errorf("mount helper: unexpected arguments %q", args)
	}
	socket, err := strconv.Atoi(os.Getenv(commfdEnv))
	if err != nil {
		return fmt.Errorf("mount helper: %s: %w", commfdEnv, err)
	}
	if request := os.Getenv(initEnv); request != "" {
		return passInit(socket, request)
	}
	fd, err := parseMountOptions(args[1]).mount(args[3])
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(socket, []byte{0}, unix.UnixRights(fd), nil, 0); err != nil {
		err = fmt.Errorf("pass the descriptor: %w", err)
		return errors.Join(err, unix.Unmount(args[3], unix.MNT_DETACH))
	}
	return nil
}

// mountOptions are the arguments of mount(2).
type mountOptions struct {
	source string
	fstype string
	flags  uintptr
	rest   []string
}

// mount mounts on dir and returns the descriptor of the device.
func (m mountOptions) mount(dir string) (device int, err error) {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open /dev/fuse: %w", err)
	}
	if err := unix.Mount(m.source, dir, m.fstype, m.flags, m.data(fd, os.Getuid(), os.Getgid())); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("mount(2): %w", err)
	}
	return fd, nil
}

// data returns the options that the fuse filesystem itself reads.
func (m mountOptions) data(fd, uid, gid int) string {
	own := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", fd, uid, gid)
	return strings.Join(append([]string{own}, m.rest...), ",")
}

// parseMountOptions takes the library's option string apart. A backslash there makes the next byte an ordinary one. It
// knows the options that Mount uses; devices and set-user-ID programs work as on any other filesystem, unlike with
// fusermount3, which forbids both.
func parseMountOptions(s string) mountOptions {
	m := mountOptions{source: "fuse", fstype: "fuse"}
	for _, option := range splitOptions(s) {
		name, value, _ := strings.Cut(option, "=")
		switch name {
		case "fsname":
			m.source = value
		case "subtype":
			m.fstype = "fuse." + value
		case "ro":
			m.flags |= unix.MS_RDONLY
		case "dev", "suid":
		default:
			m.rest = append(m.rest, option)
		}
	}
	return m
}

func splitOptions(s string) []string {
	var options []string
	var option []byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			option = append(option, s[i])
		case c == ',':
			options = append(options, string(option))
			option = option[:0]
		default:
			option = append(option, c)
		}
	}
	return append(options, string(option))
}
