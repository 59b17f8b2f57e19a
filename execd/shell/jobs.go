package shell

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// job is a process in the background.
type job struct {
	id     int
	pid    int
	text   string
	signal int           // that has ended it
	hidden bool          // a process substitution: it can be waited for, but is no job
	done   chan struct{} // closed when status is there
	coproc *coprocess    // what a coproc has until its end is known of

	mu       sync.Mutex // guards what follows
	status   int
	finished bool
	told     bool // its end has been told of
}

func (j *job) end(status int) {
	j.mu.Lock()
	j.status, j.finished = status, true
	j.mu.Unlock()
	close(j.done)
}

func (j *job) state() (status int, finished bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.status, j.finished
}

// jobTable are the jobs of one shell.
type jobTable struct {
	jobs    []*job
	foreign []*job // the parent's
}

func (t *jobTable) add(j *job) {
	if !j.hidden {
		for _, o := range t.jobs {
			j.id = max(j.id, o.id)
		}
		j.id++
	}
	t.jobs = append(t.jobs, j)
}

// forked is what a subshell has: it can list its parent's jobs, but not wait for them.
func (t *jobTable) forked() *jobTable { return &jobTable{foreign: t.visible()} }

func (t *jobTable) byPID(pid int) *job {
	for _, j := range slices.Backward(t.jobs) {
		if j.pid == pid {
			return j
		}
	}
	return nil
}

// visible are the jobs, without process substitutions.
func (t *jobTable) visible() []*job {
	if len(t.jobs) == 0 {
		return t.foreign
	}
	var out []*job
	for _, j := range t.jobs {
		if !j.hidden {
			out = append(out, j)
		}
	}
	return out
}

// find returns the job of a %spec: %n, %%, %+, %-, %prefix and %?part.
func (t *jobTable) find(spec string) (*job, bool) {
	jobs := t.visible()
	spec = strings.TrimPrefix(spec, "%")
	at := func(back int) (*job, bool) {
		if len(jobs) < back {
			return nil, false
		}
		return jobs[len(jobs)-back], true
	}
	switch spec {
	case "", "%", "+":
		return at(1)
	case "-":
		if len(jobs) == 1 {
			return at(1)
		}
		return at(2)
	}
	n, err := strconv.Atoi(spec)
	for _, j := range jobs {
		switch {
		case err == nil && j.id == n, err != nil && strings.HasPrefix(j.text, spec),
			strings.HasPrefix(spec, "?") && strings.Contains(j.text, spec[1:]):
			return j, true
		}
	}
	return nil, false
}

func (t *jobTable) remove(j *job) {
	t.jobs = slices.DeleteFunc(t.jobs, func(o *job) bool { return o == j })
}

// background starts a statement as a job. Its standard input is empty, unless it has one of its own.
func (sh *shell) background(st *syntax.Stmt) {
	child := sh.forkUnder(sh.base)
	child.piped = true
	if !sh.on(optMonitor) {
		child.replace(0, stringDescription(""))
	}
	run := *st
	run.Background = false
	if _, ok := st.Cmd.(*syntax.CallExpr); ok {
		child.noErr++ // bash puts the command in the place of the subshell, which then has no trap to run
	}
	j := &job{pid: child.proc.pid, text: printStmt(&run), done: make(chan struct{})}
	sh.jobs.add(j)
	sh.lastBg = j.pid
	sh.launch(child, func() {
		child.protect(func() {
			child.finish(child.catch(func() { child.exec(&run) }))
		})
		j.signal, _ = signalOf(child.ctx)
		child.close()
		j.end(child.status)
	})
	sh.status, sh.pipeStatus = 0, []int{0}
}

// await waits for a job. A signal with a trap ends the wait: ok is false, and status tells which.
func (sh *shell) await(j *job) (status int, ok bool) {
	for {
		select {
		case <-j.done:
			s, _ := j.state()
			sh.tellEnd(j)
			sh.endCoproc(j)
			return s, true
		default:
		}
		select {
		case <-j.done:
		case <-sh.ctx.Done():
			sh.stop()
		case <-sh.proc.wake:
			if bits := sh.proc.pending.Load(); bits != 0 {
				if sh.runSignals(); sh.flow != flowNone {
					return sh.status, false
				}
				return 128 + lowestBit(bits), false
			}
		}
	}
}

// tellEnd says that a signal has ended a job; of an interrupt and a broken pipe nobody is told.
func (sh *shell) tellEnd(j *job) {
	text, ok := signalTexts[j.signal]
	if ok && !j.told {
		sh.warnf("%5d %-22s %s", j.pid, text, j.text)
		j.told = true
	}
}

func lowestBit(bits uint64) int {
	n := 0
	for bits&1 == 0 {
		bits >>= 1
		n++
	}
	return n
}

func (sh *shell) builtinWait(args []string) int {
	args = args[1:]
	next, varName := false, ""
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-" {
		switch opt := args[0]; {
		case opt == "--":
		case opt == "-n":
			next = true
		case opt == "-f":
		case opt == "-p" && len(args) > 1:
			varName = args[1]
			args = args[1:]
			sh.unset(varName)
		default:
			sh.warnf("wait: %s: invalid option", opt)
			sh.usage("wait")
			return 2
		}
		done := args[0] == "--"
		args = args[1:]
		if done {
			break
		}
	}
	if next {
		return sh.waitNext(args, varName)
	}
	if len(args) == 0 {
		for len(sh.jobs.jobs) > 0 {
			j := sh.jobs.jobs[0]
			if s, ok := sh.await(j); !ok {
				return s
			}
			sh.jobs.remove(j)
		}
		return 0
	}
	status := 0
	for _, a := range args {
		j, problem := sh.jobArgument(a)
		if j == nil {
			sh.warnf("wait: %s", problem)
			status = 127
			continue
		}
		s, ok := sh.await(j)
		if !ok {
			return s
		}
		status = s
		if varName != "" {
			_ = sh.set(varName, strconv.Itoa(j.pid))
		}
		j.told = true
		j.id = -1
		if !j.hidden {
			j.hidden = true // it may be waited for again, but is no job any more
		}
	}
	return status
}

func (sh *shell) jobArgument(a string) (*job, string) {
	if strings.HasPrefix(a, "%") {
		if j, ok := sh.jobs.find(a); ok {
			return j, ""
		}
		return nil, a + ": no such job"
	}
	pid, err := strconv.Atoi(a)
	if err != nil {
		return nil, fmt.Sprintf("`%s': not a pid or valid job spec", a)
	}
	if j := sh.jobs.byPID(pid); j != nil {
		return j, ""
	}
	return nil, fmt.Sprintf("pid %d is not a child of this shell", pid)
}

// waitNext is wait -n: the first of the jobs that ends, or has ended.
func (sh *shell) waitNext(args []string, varName string) int {
	jobs := sh.jobs.visible()
	if len(args) > 0 {
		jobs = nil
		for _, a := range args {
			if j, _ := sh.jobArgument(a); j != nil {
				jobs = append(jobs, j)
			}
		}
	}
	if len(jobs) == 0 {
		return 127
	}
	ended := make(chan *job, len(jobs))
	over := make(chan struct{})
	var waiters sync.WaitGroup
	for _, j := range jobs {
		if _, done := j.state(); done {
			close(over)
			waiters.Wait()
			return sh.ended(j, varName)
		}
		waiters.Go(func() {
			select {
			case <-j.done:
				ended <- j
			case <-over:
			}
		})
	}
	defer waiters.Wait()
	defer close(over)
	select {
	case j := <-ended:
		return sh.ended(j, varName)
	case <-sh.ctx.Done():
		sh.stop()
	}
	return 127
}

func (sh *shell) ended(j *job, varName string) int {
	sh.jobs.remove(j)
	status, _ := j.state()
	if varName != "" {
		_ = sh.set(varName, strconv.Itoa(j.pid))
	}
	return status
}

func (sh *shell) builtinJobs(args []string) int {
	var b strings.Builder
	long, pids := false, false
	running, stopped := false, false
	for _, a := range args[1:] {
		if strings.HasPrefix(a, "-") {
			long = long || strings.Contains(a, "l")
			pids = pids || strings.Contains(a, "p")
			running = running || strings.Contains(a, "r")
			stopped = stopped || strings.Contains(a, "s")
		}
	}
	jobs := sh.jobs.visible()
	for i, j := range jobs {
		status, done := j.state()
		if running && done || stopped {
			continue
		}
		if pids {
			fmt.Fprintln(&b, j.pid)
			continue
		}
		mark := " "
		if i == len(jobs)-1 {
			mark = "+"
		} else if i == len(jobs)-2 {
			mark = "-"
		}
		state, tail := "Running", " &"
		if done {
			state, tail = "Done", ""
			if status != 0 {
				state = fmt.Sprintf("Exit %d", status)
			}
			sh.jobs.remove(j)
		}
		if long {
			fmt.Fprintf(&b, "[%d]%s %d %-24s%s%s\n", j.id, mark, j.pid, state, j.text, tail)
		} else {
			fmt.Fprintf(&b, "[%d]%s  %-24s%s%s\n", j.id, mark, state, j.text, tail)
		}
	}
	return sh.print(b.String())
}

func (sh *shell) builtinKill(args []string) int {
	sig := sigTerm
	args = args[1:]
	if len(args) == 0 {
		sh.usage("kill")
		return 2
	}
	switch a := args[0]; {
	case a == "-l" || a == "-L":
		return sh.killList(args[1:])
	case a == "-s" || a == "-n":
		if len(args) < 2 {
			sh.warnf("kill: %s: option requires an argument", a)
			return 1
		}
		n, ok := signalNumber(args[1])
		if !ok {
			sh.warnf("kill: %s: invalid signal specification", args[1])
			return 1
		}
		sig, args = n, args[2:]
	case a == "--":
		args = args[1:]
	case strings.HasPrefix(a, "-") && len(a) > 1:
		n, ok := signalNumber(a[1:])
		if !ok {
			sh.warnf("kill: %s: invalid signal specification", a[1:])
			return 1
		}
		sig, args = n, args[1:]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		sh.usage("kill")
		return 2
	}
	status := 0
	for _, a := range args {
		if !sh.killOne(a, sig) {
			status = 1
		}
	}
	if sh.proc.pending.Load() != 0 {
		if sh.runSignals(); sh.flow != flowNone {
			return sh.status
		}
	}
	if sh.ctx.Err() != nil {
		sh.stop()
	}
	return status
}

func (sh *shell) killOne(a string, sig int) bool {
	if strings.HasPrefix(a, "%") {
		j, ok := sh.jobs.find(a)
		if !ok {
			sh.warnf("kill: %s: no such job", a)
			return false
		}
		return sh.signal(j.pid, sig)
	}
	pid, err := strconv.Atoi(a)
	if err != nil {
		sh.warnf("kill: %s: arguments must be process or job IDs", a)
		return false
	}
	if pid == 0 {
		pid = sh.proc.pid
	}
	if pid < 0 {
		pid = -pid
	}
	if sh.signal(pid, sig) {
		return true
	}
	if j := sh.jobs.byPID(pid); j != nil && sig == 0 {
		if _, done := j.state(); !done {
			return true
		}
	}
	sh.warnf("kill: (%d) - No such process", pid)
	return false
}

func (sh *shell) killList(args []string) int {
	if len(args) == 0 {
		return sh.print(listSignals())
	}
	status := 0
	for _, a := range args {
		n, ok := signalNumber(a)
		if !ok {
			sh.warnf("kill: %s: invalid signal specification", a)
			status = 1
			continue
		}
		if _, err := strconv.Atoi(a); err == nil {
			if n == 0 {
				sh.print("EXIT\n")
				continue
			}
			sh.print(signalName(n) + "\n")
		} else {
			sh.print(strconv.Itoa(n) + "\n")
		}
	}
	return status
}
