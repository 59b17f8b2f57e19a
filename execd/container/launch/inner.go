package launch

import (
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// inner is the first process of an exec. It ends when the daemon does not want it any more, and all that runs with it. It is
// started before there is an exec, and waits for the command.
func inner(conn *Conn) int {
	heedSignals()
	var r Restrictions
	if _, err := conn.Receive(&r); err != nil {
		return 1
	}
	if err := ownProc(); err != nil {
		_ = conn.Send(reportOf("mount /proc of the exec", err)) // the daemon is gone when that fails
		return 1
	}
	warmUp()
	started := make(chan int, 1)
	go run(conn, &r, started)
	pid, ok := <-started
	if !ok {
		return 1
	}
	for {
		var m Control
		if _, err := conn.Receive(&m); err != nil {
			return 0
		}
		_ = unix.Kill(-pid, unix.Signal(m.Signal)) // a group that is gone needs none
	}
}

// run does what is done for the command on one thread, so that nothing waits for another to wake up: it gives up what the
// command is not to have, starts it, says so and waits for it. What it gave up is lost to the thread alone.
func run(conn *Conn, r *Restrictions, started chan<- int) {
	defer close(started)
	runtime.LockOSThread() // for good
	if step, err := r.restrict(); err != nil {
		_ = conn.Send(reportOf(step, err)) // the daemon is gone when that fails
		return
	}
	(&Command{Args: []string{"/"}}).forkExec("/", nil) // no program: for the first to be started as fast as any
	var c Command
	fds, err := conn.Receive(&c)
	if err != nil || len(fds) != 3 {
		return
	}
	pid, master, report := c.start(fds)
	if tell(conn, report, master) != nil || report.Step != "" {
		return
	}
	started <- pid
	reap(conn, pid)
}

// tell reports the start, with the terminal when there is one.
func tell(conn *Conn, r Report, master int) error {
	if master < 0 {
		return conn.Send(r)
	}
	return errors.Join(conn.Send(r, master), unix.Close(master))
}

// heedSignals undoes what the daemon was started with: a signal that is ignored, as after nohup(1), stays so in all
// programs that are started from there. One that is caught is back to its default in the next program (execve(2)).
func heedSignals() { signal.Notify(make(chan os.Signal, 1)) }

// warmUp does once what each message needs for the first time: what the library then remembers of its types, and pages of
// this program that are in no cache of the processor's yet.
func warmUp() {
	b, err := json.Marshal(Command{Args: []string{"x"}, Env: []string{"PATH=/"}, TTY: &Size{}})
	if err == nil {
		err = json.Unmarshal(b, &Command{})
	}
	if err == nil {
		_, err = json.Marshal(Report{Exited: true})
	}
	if err != nil {
		panic(err) // plain structs
	}
}

// start starts the command. It keeps nothing open of what the command was given, so that the other ends see the end of
// output.
func (c *Command) start(given []int) (pid, master int, r Report) {
	defer closeAll(given)
	master = -1
	std := []uintptr{uintptr(given[0]), uintptr(given[1]), uintptr(given[2])}
	if c.TTY != nil {
		m, slave, err := OpenTerminal(*c.TTY)
		if err != nil {
			return 0, -1, reportOf("open a terminal", err)
		}
		defer unix.Close(slave)
		master = m
		std = []uintptr{uintptr(slave), uintptr(slave), uintptr(slave)}
	}
	if err := unix.Chdir(c.Dir); err != nil {
		return 0, -1, reportOf("change to "+c.Dir, err)
	}
	path, err := lookPath(c.Args[0], c.Env)
	if err != nil {
		return 0, -1, programReport("find", err)
	}
	pid, r = c.forkExec(path, std)
	return pid, master, r
}

func (c *Command) forkExec(path string, std []uintptr) (int, Report) {
	pid, err := syscall.ForkExec(path, c.Args, &syscall.ProcAttr{
		Env: c.Env, Files: std, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: c.TTY != nil},
	})
	if err != nil {
		return 0, programReport("run", err)
	}
	return pid, Report{}
}

func programReport(step string, err error) Report {
	r := reportOf(step, err)
	r.Program = true
	return r
}

// lookPath finds a program as execvp(3) does, by the command's own PATH: one that may not be run is taken only when there is no other.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, runnable(name)
	}
	paths := ""
	for _, e := range env {
		if p, ok := strings.CutPrefix(e, "PATH="); ok {
			paths = p // the last counts
		}
	}
	var missing error = unix.ENOENT
	for _, dir := range filepath.SplitList(paths) {
		path := "./" + name // an empty one is the working directory
		if dir != "" {
			path = filepath.Join(dir, name)
		}
		switch err := runnable(path); err {
		case nil:
			return path, nil
		case unix.EACCES:
			missing = err
		}
	}
	return "", missing
}

// runnable reports what keeps a file from being a program, as far as execve(2) would not say it, or say it worse.
func runnable(path string) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.EISDIR
	}
	return unix.Access(path, unix.X_OK)
}

// reap waits for the command, and for all processes that have lost their parents, for as long as there are any.
func reap(conn *Conn, command int) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return // nobody is left
		case pid == command:
			_, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			report := Report{Exited: true, Wait: uint32(status), Alone: errors.Is(err, unix.ECHILD)}
			if err := conn.Send(report); err != nil {
				os.Exit(1) // the daemon is gone
			}
		}
	}
}
