package shell

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
)

// errSaid is an error whose message has been printed.
var errSaid = errors.New("said already")

// saved is what a redirection has displaced.
type saved struct {
	fd int
	d  *description
}

// redirect makes redirections, in order. undo puts back what was there; it must be called whether ok or not. What is
// wrong has been said.
func (sh *shell) redirect(redirs []*syntax.Redirect) (undo func(), ok bool) {
	var before []saved
	undo = func() {
		for i := len(before) - 1; i >= 0; i-- {
			sh.replace(before[i].fd, before[i].d)
		}
	}
	defer func() {
		if r := recover(); r != nil { // an expansion has failed: its line is given up
			undo()
			panic(r)
		}
	}()
	for _, r := range redirs {
		keep := func(fd int, d *description) { before = append(before, saved{fd, sh.fds.put(fd, d)}) }
		if err := sh.redirectOne(r, keep); err != nil {
			if err != errSaid {
				sh.warnf("%v", err)
			}
			return undo, false
		}
	}
	return undo, true
}

// execRedirect is exec without a command: its redirections stay.
func (sh *shell) execRedirect(redirs []*syntax.Redirect) {
	sh.status = 0
	for _, r := range redirs {
		err := sh.redirectOne(r, sh.replace)
		if err != nil {
			if err != errSaid {
				sh.warnf("%v", err)
			}
			sh.status = 1
			if sh.on(optPosix) {
				sh.flow = flowExit
			}
			break
		}
	}
	sh.pipeStatus = []int{sh.status}
}

// redirectOne makes one redirection by put, which takes over the description.
func (sh *shell) redirectOne(r *syntax.Redirect, put func(int, *description)) error {
	fd, varName := defaultFD(r.Op), ""
	if r.N != nil {
		if name, ok := strings.CutPrefix(r.N.Value, "{"); ok {
			varName = strings.TrimSuffix(name, "}")
			if r.Op == syntax.DplIn || r.Op == syntax.DplOut {
				if w, ok := literalWord(r.Word); ok && w == "-" {
					return sh.closeNamed(varName, put)
				}
			}
		} else {
			n, err := strconv.Atoi(r.N.Value)
			if err != nil || sh.limits.Descriptors > 0 && n >= sh.limits.Descriptors {
				return fmt.Errorf("%s: Bad file descriptor", r.N.Value)
			}
			fd = n
		}
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return sh.install(fd, varName, stringDescription(sh.hereText(r)), put)
	case syntax.DplIn, syntax.DplOut:
		return sh.duplicate(r, fd, varName, put)
	case syntax.RdrAll, syntax.AppAll:
		d, err := sh.openTarget(r)
		if err != nil {
			return err
		}
		put(1, d)
		put(2, d.retain())
		return nil
	}
	d, err := sh.openTarget(r)
	if err != nil {
		return err
	}
	return sh.install(fd, varName, d, put)
}

// defaultFD is the descriptor that an operator is about without a number before it.
func defaultFD(op syntax.RedirOperator) int {
	switch op {
	case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return 0
	}
	return 1
}

// install makes fd lead to d, or, for {name}>, a descriptor from 10 up whose number goes to the variable; that one
// outlives the command.
func (sh *shell) install(fd int, varName string, d *description, put func(int, *description)) error {
	if varName == "" {
		put(fd, d)
		return nil
	}
	fd = sh.fds.free(10)
	if sh.limits.Descriptors > 0 && fd >= sh.limits.Descriptors {
		_ = d.release()
		return fmt.Errorf("redirection error: cannot duplicate fd: %s", command.Reason(command.ErrFiles))
	}
	r, ok := parseRef(varName)
	if !ok {
		_ = d.release()
		return fmt.Errorf("`%s': not a valid identifier", varName)
	}
	if err := sh.assign(r, strconv.Itoa(fd), false); err != nil {
		_ = d.release()
		sh.warnf("%v", err)
		return fmt.Errorf("%s: cannot assign fd to variable", varName)
	}
	sh.replace(fd, d)
	return nil
}

// closeNamed is {name}>&-.
func (sh *shell) closeNamed(name string, put func(int, *description)) error {
	r, ok := parseRef(name)
	if !ok {
		return fmt.Errorf("%s: ambiguous redirect", name)
	}
	value, _ := sh.element(r)
	n, err := strconv.Atoi(value)
	if err != nil {
		return fmt.Errorf("%s: ambiguous redirect", name)
	}
	sh.replace(n, nil)
	return nil
}

// hereText is what a here-document or here-string gives to read.
func (sh *shell) hereText(r *syntax.Redirect) string {
	if r.Op == syntax.WordHdoc {
		return sh.assignable(r.Word) + "\n"
	}
	if r.Hdoc == nil {
		return ""
	}
	if quotedWord(r.Word) {
		text := rawText(r.Hdoc)
		if r.Op == syntax.DashHdoc {
			text = stripTabs(text)
		}
		return text
	}
	return sh.hereDocument(r.Hdoc, r.Op == syntax.DashHdoc)
}

func stripTabs(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimLeft(l, "\t")
	}
	return strings.Join(lines, "")
}

// duplicate is n>&m, n<&m, n>&m- and n>&-; >&word that is no number is &>word.
func (sh *shell) duplicate(r *syntax.Redirect, fd int, varName string, put func(int, *description)) error {
	words := sh.fields([]*syntax.Word{r.Word})
	if len(words) != 1 {
		return fmt.Errorf("%s: ambiguous redirect", wordText(r.Word))
	}
	target := words[0]
	if target == "-" {
		put(fd, nil)
		return nil
	}
	digits, move := strings.CutSuffix(target, "-")
	from, err := strconv.Atoi(digits)
	if err != nil || from < 0 {
		if r.Op == syntax.DplOut && r.N == nil {
			d, err := sh.openPath(r, target, treepath.Write|treepath.Create|treepath.Truncate)
			if err != nil {
				return err
			}
			put(1, d)
			put(2, d.retain())
			return nil
		}
		return fmt.Errorf("%s: ambiguous redirect", wordText(r.Word))
	}
	d := sh.fds.get(from)
	if d == nil {
		return fmt.Errorf("%s: Bad file descriptor", wordText(r.Word))
	}
	if err := sh.install(fd, varName, d.retain(), put); err != nil {
		return err
	}
	if move && from != fd {
		sh.replace(from, nil) // for good, as bash does
	}
	return nil
}

// openTarget opens the file of a redirection.
func (sh *shell) openTarget(r *syntax.Redirect) (*description, error) {
	words := sh.redirectWord(r.Word)
	if len(words) != 1 {
		return nil, fmt.Errorf("%s: ambiguous redirect", wordText(r.Word))
	}
	var flag treepath.Flag
	switch r.Op {
	case syntax.RdrIn:
		flag = treepath.Read
	case syntax.RdrInOut:
		flag = treepath.Read | treepath.Write | treepath.Create
	case syntax.AppOut, syntax.AppAll:
		flag = treepath.Write | treepath.Create | treepath.Append
	default:
		flag = treepath.Write | treepath.Create | treepath.Truncate
	}
	return sh.openPath(r, words[0], flag)
}

// redirectWord expands a target; a pattern that fits several files is as good as none.
func (sh *shell) redirectWord(w *syntax.Word) []string {
	if sh.on(optPosix) {
		return []string{sh.assignable(w)}
	}
	return sh.fields([]*syntax.Word{w})
}

func (sh *shell) openPath(r *syntax.Redirect, path string, flag treepath.Flag) (*description, error) {
	if sh.on(optNoclobber) && flag&treepath.Truncate != 0 && (r.Op == syntax.RdrOut || r.Op == syntax.RdrAll || r.Op == syntax.DplOut) {
		if a, err := sh.fs().Stat(sh.ctx, path); err == nil && a.Type == vfs.TypeRegular {
			return nil, fmt.Errorf("%s: cannot overwrite existing file", path)
		}
	}
	d, err := sh.open(path, flag, 0o666)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", path, command.Reason(err))
	}
	return d, nil
}

// open opens a path for this shell.
func (sh *shell) open(path string, flag treepath.Flag, mode uint32) (*description, error) {
	if l, ok := sh.ulimits['n']; ok && l.soft < uint64(len(sh.fds.open)) {
		return nil, command.ErrFiles
	}
	f, err := sh.fs().OpenFile(sh.base, path, flag, mode)
	if err != nil {
		return nil, err
	}
	return fileDescription(f, flag), nil
}

// print writes to standard output and returns the status that a builtin has then. A closed pipe ends a part of a
// pipeline as SIGPIPE does.
func (sh *shell) print(s string) int {
	if s == "" {
		return 0
	}
	_, err := io.WriteString(sh.stdout(), s)
	return sh.written("", err)
}

func (sh *shell) written(name string, err error) int {
	switch {
	case err == nil:
		return 0
	case sh.ctx.Err() != nil:
		sh.stop()
	case errors.Is(err, command.ErrPipe):
		panic(abort{status: command.StatusPipe, exit: true, killed: true})
	}
	if name != "" {
		name += ": "
	}
	sh.unwritten = true
	sh.warnf("%swrite error: %s", name, command.Reason(err))
	return 1
}
