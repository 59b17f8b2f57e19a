package shell

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// computing are the system calls of a Go program that computes and uses what it has open already. None of them opens or
// names a file, makes a socket, starts a process or signals another one; clone is a matter of its own.
var computing = strings.Fields(`
	read pread64 write
	mmap munmap mprotect madvise mremap brk mincore
	futex sched_yield sched_getaffinity nanosleep clock_nanosleep clock_gettime gettimeofday
	epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd2
	set_robust_list rseq gettid getpid tgkill
	rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack restart_syscall
	timer_create timer_settime timer_delete setitimer
	getrandom exit exit_group`)

// confined is the variable that says what a child of TestIsolation is to do.
const confined = "CARREL_TEST_CONFINED"

// Scripts do without the host: while they run, a system call that is not of computing is the end of the process, with the
// stack of whoever made it.
func TestIsolation(t *testing.T) {
	switch os.Getenv(confined) {
	case "corpus":
		runConfined(t)
		return
	case "open":
		confine(t)
		_, _ = os.Open("/")
		return
	}
	for _, tt := range []struct {
		does string
		ends bool
	}{{"open", true}, {"corpus", false}} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestIsolation$", "-test.v")
		cmd.Env = append(os.Environ(), confined+"="+tt.does)
		out, err := cmd.CombinedOutput()
		if ended := err != nil && strings.Contains(string(out), "SIGSYS"); ended != tt.ends || err != nil != ended {
			t.Errorf("%s: %v\n%s", tt.does, err, out[:min(len(out), 8000)])
		}
		if !tt.ends && !strings.Contains(string(out), "scripts ran") {
			t.Errorf("%s: nothing ran:\n%s", tt.does, out)
		}
	}
}

// every is which of the corpora's cases run confined: that many times fewer than all.
const every = 5

func runConfined(t *testing.T) {
	oils, recorded := readCases[oilsCase](t, "oils.jsonl"), readCases[recordedCase](t, "recorded.jsonl")
	_ = time.Now().Local().String() // the machine's time zone is read once, by whoever asks first
	confine(t)
	n := 0
	for i := 0; i < len(oils); i += every {
		runScript(t, newTree(t), oils[i].Script, true)
		n++
	}
	for i := 0; i < len(recorded); i += every {
		fs := newTree(t)
		for name, text := range recorded[i].Files {
			p := "/case/" + name
			if err := fs.MkdirAll(t.Context(), p[:strings.LastIndexByte(p, '/')], 0o777); err != nil {
				t.Fatal(err)
			}
			if err := fs.WriteFile(t.Context(), p, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		runScript(t, fs, recorded[i].Command, false)
		n++
	}
	for _, script := range []string{
		"git init -q; echo a > a; git add .; git -c user.name=A -c user.email=a@b commit -qm a; git log -p; git status; git switch -c b",
		"git init -q up; cd up; export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b; echo a > a; git add .; " +
			"git commit -qm a; cd ..; git clone up down; cd down; echo b > a; git stash; git stash pop; git commit -qam b; git push origin HEAD:b; git pull; " +
			"git switch -qc c HEAD~1; echo c > a; git commit -qam c; git merge origin/b; git ls-remote; git fetch https://example.com/x; " +
			"git clone git@example.com:x; git clone file:///etc x; git clone /etc/x",
		"cat /etc/passwd /proc/self/environ ../../../../etc/hosts; ls -la / /tmp /dev; echo > /dev/tcp/127.0.0.1/1; /bin/sh -c id",
		"date; TZ=Europe/Paris date; id; hostname; uname -a; nproc; df; ps; kill -9 1; cat /dev/urandom | head -c 9; tar cz . | tar tz",
		"sqlite3 a.db 'create table t(a); insert into t values(random()); select * from t order by a' .dump .tables; sqlite3 a.db 'vacuum'",
		"sqlite3 'file:/etc/x.db?vfs=os' .tables; sqlite3 a.db \"attach 'file:/etc/x.db?vfs=os' as x\" 'pragma journal_mode=wal'; sqlite3 a.db .tables",
		"tar cJ . | tar tJ; seq 1000 | xz | xz -dc | tail -n 1",
	} {
		runScript(t, newTree(t), script, false)
		n++
	}
	t.Logf("%d scripts ran", n)
}

// confine leaves this process only what computing needs. There is no way back.
func confine(t *testing.T) {
	t.Helper()
	info, err := arch.GetInfo("")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range computing {
		if _, ok := info.SyscallNames[name]; ok { // not every machine has all
			names = append(names, name)
		}
	}
	thread := seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.BitsSet, Value: unix.CLONE_THREAD}}
	err = seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionTrap,
		Syscalls: []seccomp.SyscallGroup{{
			Action: seccomp.ActionAllow, Names: names,
			NamesWithCondtions: []seccomp.NameWithConditions{{Name: "clone", Conditions: thread}},
		}, {
			// Its flags are out of a filter's sight. The C library makes threads by clone where there is no clone3.
			Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{"clone3"},
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
}
