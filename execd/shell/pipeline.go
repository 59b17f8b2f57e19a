package shell

import (
	"mvdan.cc/sh/v3/syntax"
)

// pipeline runs the commands of a | b |& c each in a subshell of its own, at once, with pipes between them.
func (sh *shell) pipeline(cmd *syntax.BinaryCmd) {
	parts, both := flatten(cmd, nil, nil)
	statuses := make([]int, len(parts))
	done := make(chan int, len(parts))
	var in *description // the read end of the pipe before
	last := len(parts) - 1
	for i, part := range parts {
		if i == last && sh.shopt(optLastpipe) {
			break
		}
		child := sh.forkProcess()
		child.piped = true
		if in != nil {
			child.replace(0, in)
			in = nil
		}
		if i < last {
			r, w, _ := pipeEnds()
			if both[i] {
				child.replace(2, w.retain())
			}
			child.replace(1, w)
			in = r
			sh.launch(child, func() {
				child.runPart(part)
				statuses[i] = child.status
				child.close()
				done <- i
			})
			continue
		}
		child.runPart(part)
		statuses[i] = child.status
		child.close()
	}
	if in != nil {
		sh.lastPart(parts[last], in)
		statuses[last] = sh.status
	}
	for range last {
		<-done // each part ends with the context, and with the pipes that it reads and writes
	}
	if sh.ctx.Err() != nil {
		sh.stop()
	}
	sh.pipeStatus = statuses
	sh.status = sh.pipeResult(statuses)
}

// flatten lists the parts of a pipeline from the left, and which of them send standard error along.
func flatten(cmd *syntax.BinaryCmd, parts []*syntax.Stmt, both []bool) ([]*syntax.Stmt, []bool) {
	if x, ok := cmd.X.Cmd.(*syntax.BinaryCmd); ok && isPipe(x.Op) && len(cmd.X.Redirs) == 0 && !cmd.X.Negated {
		parts, both = flatten(x, parts, both)
	} else {
		parts = append(parts, cmd.X)
	}
	both = append(both, cmd.Op == syntax.PipeAll)
	if y, ok := cmd.Y.Cmd.(*syntax.BinaryCmd); ok && isPipe(y.Op) && len(cmd.Y.Redirs) == 0 && !cmd.Y.Negated {
		return flatten(y, parts, both)
	}
	return append(parts, cmd.Y), both
}

func isPipe(op syntax.BinCmdOperator) bool { return op == syntax.Pipe || op == syntax.PipeAll }

// runPart runs one part of a pipeline in its shell.
func (sh *shell) runPart(part *syntax.Stmt) {
	sh.protect(func() {
		sh.finish(sh.catch(func() { sh.exec(part) }))
	})
}

// lastPart runs the last part of a pipeline in the shell itself (shopt lastpipe).
func (sh *shell) lastPart(part *syntax.Stmt, in *description) {
	old := sh.fds.put(0, in)
	defer func() { sh.replace(0, old) }()
	sh.exec(part)
}

// replace makes a descriptor lead elsewhere.
func (sh *shell) replace(n int, d *description) {
	if old := sh.fds.put(n, d); old != nil {
		_ = old.release()
	}
}

// pipeResult is the status of a pipeline: that of its last part, or of the last that failed with pipefail.
func (sh *shell) pipeResult(statuses []int) int {
	status := statuses[len(statuses)-1]
	if status != 0 || !sh.on(optPipefail) {
		return status
	}
	for _, s := range statuses {
		if s != 0 {
			status = s
		}
	}
	return status
}
