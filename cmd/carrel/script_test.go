package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/cmd/carrel/daemon"
	"github.com/carrelfs/carrel/fusefs"
)

func TestMain(m *testing.M) {
	fusefs.HelperMain()
	lastPort.Store(10_000 + rand.Int32N(20_000))
	testscript.Main(m, map[string]func(){"carrel": main, "syncpeer": peerMain})
}

// The scripts run the program as people do: a process for each command, real stores, real mounts.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("CARREL_STORE", filepath.Join(env.WorkDir, "store"))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("TZ", "UTC")
			env.Setenv("LONG", strings.Repeat("n", 256))
			env.Setenv("PORT", freePort())
			// A program under the race detector sleeps a second before it exits, and a script starts dozens.
			env.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
			env.Defer(func() { cleanUp(t, env.WorkDir) })
			return writeChapter("Branch a workspace per agent", env.WorkDir)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "eventually": eventually, "daemon": signalDaemon, "kill-both": killBoth, "flip": flip,
			"truncate": truncate, "kill-owner": killOwner,
		},
		RequireExplicitExec: true,
	})
}

// lastPort is the last one that was given to a script. Test processes that run at the same time begin with different ones.
var lastPort atomic.Int32

// freePort is one that the kernel gives nobody by itself (ip_local_port_range), so that nothing has it while what listens
// there is stopped and started again.
func freePort() string {
	for {
		port := strconv.Itoa(int(lastPort.Add(1)))
		addr := net.JoinHostPort("127.0.0.1", port)
		udp, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		tcp, err := net.Listen("tcp", addr)
		udp.Close()
		if err == nil {
			tcp.Close()
			return port
		}
	}
}

// writeChapter writes the commands of a chapter of the README into chapter.sh, with mounts in the same directory.
func writeChapter(title, dir string) error {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		return err
	}
	_, chapter, found := strings.Cut(string(readme), "\n## "+title+"\n")
	_, chapter, begins := strings.Cut(chapter, "\n```sh\n")
	chapter, _, ends := strings.Cut(chapter, "\n```\n")
	if !found || !begins || !ends {
		return fmt.Errorf("the README has no commands in a chapter %q", title)
	}
	chapter = strings.ReplaceAll(chapter, "/mnt/", filepath.Join(dir, "mnt")+"/")
	return os.WriteFile(filepath.Join(dir, "chapter.sh"), []byte(chapter+"\n"), 0o600)
}

// cleanUp takes away what a failed script left mounted, and ends its daemons while their stores are still there.
func cleanUp(t *testing.T, dir string) {
	entries, err := daemon.Entries()
	if err != nil {
		t.Error(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Dir, dir+"/") {
			continue
		}
		p := newProgram(nil, os.Stdout, os.Stderr)
		if p.run(context.Background(), []string{"carrel", "umount", "--force", e.Dir}) != exitDone {
			t.Errorf("%s stays mounted", e.Dir)
		}
	}
}

// exits runs a program and requires an exit status: exits 2 carrel ls
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM ARGUMENTS")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// scriptPatience is how long a script waits for what another process does.
const scriptPatience = 2 * time.Minute

// eventually runs a program until it succeeds: what it waits for is done by other processes.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	// What is waited for needs the processor, too.
	for deadline := time.Now().Add(scriptPatience); ; time.Sleep(20 * time.Millisecond) {
		err := ts.Exec(args[0], args[1:]...)
		if (err == nil) != neg {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("not within %v: %q: %v", scriptPatience, args, err)
		}
	}
}

// signalDaemon sends a signal to the daemon that a mount's store is served by: daemon kill MNT
func signalDaemon(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: daemon kill|term|supervisor-term|supervisor-kill DIR")
	}
	pid := daemonOf(ts, ts.MkAbs(args[1]))
	signals := map[string]unix.Signal{
		"kill": unix.SIGKILL, "term": unix.SIGTERM, "supervisor-term": unix.SIGTERM, "supervisor-kill": unix.SIGKILL,
	}
	if strings.HasPrefix(args[0], "supervisor-") {
		pid = parentOf(ts, pid)
	}
	process, err := unix.PidfdOpen(pid, 0)
	ts.Check(err)
	ts.Check(unix.Kill(pid, signals[args[0]]))
	ts.Check(waitForProcess(process))
	ts.Check(unix.Close(process))
}

// killBoth kills a daemon and its supervisor, stopping that one first so that it cannot start another.
func killBoth(ts *testscript.TestScript, neg bool, args []string) {
	pid := daemonOf(ts, ts.MkAbs(args[0]))
	for _, p := range []int{parentOf(ts, pid), pid} {
		process, err := unix.PidfdOpen(p, 0)
		ts.Check(err)
		ts.Check(unix.Kill(p, unix.SIGSTOP))
		defer func() {
			ts.Check(unix.Kill(p, unix.SIGKILL))
			ts.Check(waitForProcess(process))
			ts.Check(unix.Close(process))
		}()
	}
}

// killOwner kills the process that has a store open: kill-owner STORE
func killOwner(ts *testscript.TestScript, neg bool, args []string) {
	owner, err := control.Dial(context.Background(), ts.MkAbs(args[0]))
	ts.Check(err)
	process, err := unix.PidfdOpen(owner.Owner().PID, 0)
	ts.Check(err)
	ts.Check(unix.PidfdSendSignal(process, unix.SIGKILL, nil, 0))
	ts.Check(waitForProcess(process))
	ts.Check(unix.Close(process))
	ts.Check(owner.Close())
}

func daemonOf(ts *testscript.TestScript, dir string) int {
	procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	ts.Check(err)
	for _, p := range procs {
		line, err := os.ReadFile(p)
		args := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
		if err == nil && len(args) > 2 && args[0] == "carrel" && strings.HasSuffix(args[1], "daemon") && args[len(args)-1] == dir {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p)))
			ts.Check(err)
			return pid
		}
	}
	ts.Fatalf("no daemon has started with %s", dir)
	return 0
}

func parentOf(ts *testscript.TestScript, pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	ts.Check(err)
	_, rest, _ := strings.Cut(string(stat), ") ")
	parent, err := strconv.Atoi(strings.Fields(rest)[1])
	ts.Check(err)
	return parent
}

// flip inverts the byte in the middle of every file that a pattern matches, or one so many bytes before the end.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	files, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if neg || len(files) == 0 {
		ts.Fatalf("no file matches %s", args[0])
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		ts.Check(err)
		at := len(b) / 2
		if len(args) > 1 {
			n, err := strconv.Atoi(args[1])
			ts.Check(err)
			at = len(b) - n
		}
		b[at] ^= 0xff
		ts.Check(os.WriteFile(name, b, 0o600))
	}
}

// truncate cuts a file to a number of bytes.
func truncate(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), n))
}
