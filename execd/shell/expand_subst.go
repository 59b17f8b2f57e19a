package shell

import (
	"io"
	"strconv"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"context"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
)

// capture collects the output of a command substitution.
type capture struct {
	meter *command.Meter
	done  chan struct{} // closed when nobody can write any more

	mu  sync.Mutex // guards buf
	buf []byte
}

func (c *capture) write(_ context.Context, b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.meter.Memory(int64(len(b))); err != nil {
		return 0, err
	}
	c.buf = append(c.buf, b...)
	return len(b), nil
}

func (c *capture) close() error {
	close(c.done)
	return nil
}

// substitute runs $(…) in a copy of the shell and returns what it wrote, without the newlines at its end.
func (sh *shell) substitute(cs *syntax.CmdSubst) string {
	if s, ok := sh.substituteFile(cs); ok {
		return s
	}
	out := sh.captureOutput(func(child *shell) { child.execAll(cs.Stmts) })
	sh.substDone = true
	return trimOutput(sh, out)
}

func trimOutput(sh *shell, out string) string {
	if strings.IndexByte(out, 0) >= 0 {
		sh.warnf("warning: command substitution: ignored null byte in input")
		out = strings.ReplaceAll(out, "\x00", "")
	}
	return strings.TrimRight(out, "\n")
}

// captureOutput runs f in a copy of the shell. The status becomes this shell's.
func (sh *shell) captureOutput(f func(*shell)) string {
	child := sh.fork()
	if !sh.shopt(optInheritErrexit) && !sh.on(optPosix) {
		child.opts.switchSet(optErrexit, false)
	}
	child.traceDepth++
	child.proc = sh.newProcess(sh.proc.cancel)
	child.proc.ignored.Store(sh.proc.ignored.Load())
	c := &capture{meter: sh.meter, done: make(chan struct{})}
	child.replace(1, newDescription("pipe:", stream{write: c.write, close: c.close}))
	child.protect(func() {
		child.finish(child.catch(func() { f(child) }))
	})
	sh.status = child.status
	child.close()
	select {
	case <-c.done:
	case <-sh.ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = sh.meter.Memory(-int64(len(c.buf)))
	if sh.ctx.Err() != nil {
		sh.stop()
	}
	return string(c.buf)
}

// substituteFile is $(<file).
func (sh *shell) substituteFile(cs *syntax.CmdSubst) (string, bool) {
	if len(cs.Stmts) != 1 {
		return "", false
	}
	st := cs.Stmts[0]
	if st.Cmd != nil || len(st.Redirs) != 1 || st.Redirs[0].Op != syntax.RdrIn || st.Redirs[0].N != nil {
		return "", false
	}
	sh.substDone = true
	sh.status = 0
	words := sh.redirectWord(st.Redirs[0].Word)
	if len(words) != 1 {
		sh.warnf("%s: ambiguous redirect", wordText(st.Redirs[0].Word))
		sh.status = 1
		return "", true
	}
	d, err := sh.open(words[0], treepath.Read, 0)
	if err != nil {
		sh.warnf("%s: %s", words[0], command.Reason(err))
		sh.status = 1
		return "", true
	}
	defer d.release()
	r := io.Reader(end{sh.ctx, d})
	if sh.limits.Memory > 0 {
		r = io.LimitReader(r, sh.limits.Memory+1)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		sh.warnf("%s: %s", words[0], command.Reason(err))
		sh.status = 1
	}
	sh.room(len(b))
	return trimOutput(sh, string(b)), true
}

// processSubst starts <(…) or >(…) and returns the path under which its pipe can be opened.
func (sh *shell) processSubst(ps *syntax.ProcSubst) string {
	r, w, _ := pipeEnds()
	child := sh.forkUnder(sh.base)
	child.piped = true
	mine := r
	if ps.Op == syntax.CmdOut {
		child.replace(0, r)
		mine = w
	} else {
		child.replace(1, w)
	}
	j := &job{pid: child.proc.pid, hidden: true, done: make(chan struct{})}
	sh.jobs.add(j)
	sh.lastBg = child.proc.pid
	sh.launch(child, func() {
		child.protect(func() {
			child.finish(child.catch(func() { child.execAll(ps.Stmts) }))
		})
		child.close()
		j.end(child.status)
	})
	n := 63
	for sh.fds.get(n) != nil && n > 10 {
		n--
	}
	sh.replace(n, mine)
	sh.subFDs = append(sh.subFDs, n)
	return "/dev/fd/" + strconv.Itoa(n)
}

// closeSubstitutions closes the pipes of the process substitutions of a command, all but the first n.
func (sh *shell) closeSubstitutions(n int) {
	for len(sh.subFDs) > n {
		last := len(sh.subFDs) - 1
		sh.replace(sh.subFDs[last], nil)
		sh.subFDs = sh.subFDs[:last]
	}
}
