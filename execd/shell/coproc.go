package shell

import (
	"strconv"

	"mvdan.cc/sh/v3/syntax"
)

// coprocess is what a coproc leaves in its shell: two descriptors, and the variables that say which.
type coprocess struct {
	name string
	fds  [2]int
	ends [2]*description
}

// endCoproc closes the descriptors of a coproc that has ended, if they are still its own, and unsets its variables.
func (sh *shell) endCoproc(j *job) {
	c := j.coproc
	if c == nil {
		return
	}
	j.coproc = nil
	for i, n := range c.fds {
		if sh.fds.get(n) == c.ends[i] {
			sh.replace(n, nil)
		}
	}
	sh.unset(c.name)
	sh.unset(c.name + "_PID")
}

// freeDescriptors finds as many descriptors as are asked for, from 63 downwards, where bash puts a coproc's.
func (sh *shell) freeDescriptors(n int) (free []int, ok bool) {
	for fd := 63; fd > 2 && len(free) < n; fd-- {
		if sh.fds.get(fd) == nil {
			free = append(free, fd)
		}
	}
	return free, len(free) == n
}

// coproc starts a command with pipes to and from it, whose descriptors go to an array.
func (sh *shell) coproc(cmd *syntax.CoprocClause) {
	name := "COPROC"
	if cmd.Name != nil {
		name = sh.oneString(cmd.Name)
	}
	for _, j := range sh.jobs.jobs {
		if _, ended := j.state(); ended {
			sh.endCoproc(j)
		}
	}
	fds, ok := sh.freeDescriptors(2)
	if !ok {
		sh.warnf("coproc: Too many open files")
		sh.status, sh.pipeStatus = 1, []int{1}
		return
	}
	inR, inW, _ := pipeEnds()
	outR, outW, _ := pipeEnds()
	child := sh.forkUnder(sh.base)
	child.piped = true
	child.replace(0, inR)
	child.replace(1, outW)
	j := &job{pid: child.proc.pid, text: printStmt(cmd.Stmt), done: make(chan struct{})}
	sh.jobs.add(j)
	sh.lastBg = j.pid
	sh.launch(child, func() {
		child.protect(func() {
			child.finish(child.catch(func() { child.exec(cmd.Stmt) }))
		})
		child.close()
		j.end(child.status)
	})
	sh.replace(fds[0], outR)
	sh.replace(fds[1], inW)
	j.coproc = &coprocess{name: name, fds: [2]int(fds), ends: [2]*description{outR, inW}}
	_ = sh.setList(name, []string{strconv.Itoa(fds[0]), strconv.Itoa(fds[1])})
	_ = sh.set(name+"_PID", strconv.Itoa(j.pid))
	sh.status, sh.pipeStatus = 0, []int{0}
}
