package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

// testExpr evaluates the inside of [[ ]]: 0 for true, 1 for false, 2 for what is no expression.
func (sh *shell) testExpr(x syntax.TestExpr) int {
	switch x := x.(type) {
	case *syntax.Word:
		if cmd, ok := sh.negatedTest(x); ok {
			return sh.testExpr(cmd)
		}
		s := sh.oneString(x)
		sh.traceTest("-n " + quoteTrace(s))
		return boolStatus(s != "")
	case *syntax.ParenTest:
		return sh.testExpr(x.X)
	case *syntax.UnaryTest:
		return sh.testUnary(x)
	case *syntax.BinaryTest:
		return sh.testBinary(x)
	}
	return 2
}

func (sh *shell) traceTest(s string) {
	if sh.on(optXtrace) {
		sh.trace("[[ " + s + " ]]")
	}
}

func (sh *shell) testUnary(x *syntax.UnaryTest) int {
	if x.Op == syntax.TsNot {
		switch sh.testExpr(x.X) {
		case 0:
			return 1
		case 1:
			return 0
		}
		return 2
	}
	w, ok := x.X.(*syntax.Word)
	if !ok {
		return 2
	}
	s := sh.oneString(w)
	sh.traceTest(x.Op.String() + " " + quoteTrace(s))
	return boolStatus(sh.unaryTest(x.Op.String(), s))
}

func (sh *shell) testBinary(x *syntax.BinaryTest) int {
	switch x.Op {
	case syntax.AndTest:
		if s := sh.testExpr(x.X); s != 0 {
			return s
		}
		return sh.testExpr(x.Y)
	case syntax.OrTest:
		if s := sh.testExpr(x.X); s == 0 {
			return 0
		}
		return sh.testExpr(x.Y)
	}
	xw, ok1 := x.X.(*syntax.Word)
	yw, ok2 := x.Y.(*syntax.Word)
	if !ok1 || !ok2 {
		return 2
	}
	left := sh.oneString(xw)
	op := x.Op.String()
	switch op {
	case "==", "=", "!=":
		pat := sh.patternOf(yw)
		sh.traceTest(quoteTrace(left) + " " + op + " " + pat)
		return boolStatus(sh.matches(pat, left, sh.shopt(optNocasematch)) == (op != "!="))
	case "=~":
		return sh.regexTest(left, yw)
	case "-eq", "-ne", "-lt", "-le", "-gt", "-ge":
		right := sh.oneString(yw)
		sh.traceTest(quoteTrace(left) + " " + op + " " + quoteTrace(right))
		a, b := sh.arith(left), sh.arith(right)
		return boolStatus(compareInts(op, a, b))
	}
	right := sh.oneString(yw)
	sh.traceTest(quoteTrace(left) + " " + op + " " + quoteTrace(right))
	switch op {
	case "<":
		return boolStatus(left < right)
	case ">":
		return boolStatus(left > right)
	}
	return boolStatus(sh.compareFiles(op, left, right))
}

func compareInts(op string, a, b int64) bool {
	switch op {
	case "-eq":
		return a == b
	case "-ne":
		return a != b
	case "-lt":
		return a < b
	case "-le":
		return a <= b
	case "-gt":
		return a > b
	}
	return a >= b
}

// compareFiles is -nt, -ot and -ef.
func (sh *shell) compareFiles(op, left, right string) bool {
	a, errA := sh.fs().Stat(sh.ctx, left)
	b, errB := sh.fs().Stat(sh.ctx, right)
	switch op {
	case "-nt":
		return errA == nil && (errB != nil || a.Mtime > b.Mtime)
	case "-ot":
		return errB == nil && (errA != nil || a.Mtime < b.Mtime)
	}
	return errA == nil && errB == nil && a.Ino == b.Ino
}

// unaryTest is an operator of test and [[ with one operand.
func (sh *shell) unaryTest(op, s string) bool {
	switch op {
	case "-n":
		return s != ""
	case "-z":
		return s == ""
	case "-v":
		return sh.isSet(s)
	case "-R":
		v, ok := sh.vars.Get(s)
		return ok && v.attrs&attrNameref != 0 && v.set
	case "-o":
		return sh.optionOn(s)
	case "-t":
		return false // nothing here is a terminal
	case "-h", "-L":
		a, err := sh.fs().Lstat(sh.ctx, s)
		return err == nil && a.Type == vfs.TypeSymlink
	case "-r", "-e", "-a", "-f", "-s", "-x":
		if i := strings.LastIndexByte(s, '/'); i >= 0 && slices.Contains(binDirs, s[:i]) && op != "-x" {
			if _, err := sh.findPath(s); err == nil {
				return true
			}
		}
	}
	switch op {
	case "-r":
		return sh.fs().Access(sh.ctx, s, treepath.AccessRead) == nil
	case "-w":
		return sh.fs().Access(sh.ctx, s, treepath.AccessWrite) == nil
	case "-x":
		if i := strings.LastIndexByte(s, '/'); i >= 0 && slices.Contains(binDirs, s[:i]) {
			_, err := sh.findPath(s)
			return err == nil
		}
		return sh.fs().Access(sh.ctx, s, treepath.AccessExec) == nil
	}
	a, err := sh.fs().Stat(sh.ctx, s)
	return err == nil && sh.attrTest(op, a)
}

func (sh *shell) attrTest(op string, a vfs.Attr) bool {
	switch op {
	case "-e", "-a":
		return true
	case "-f":
		return a.Type == vfs.TypeRegular
	case "-d":
		return a.Type == vfs.TypeDir
	case "-c":
		return a.Type == vfs.TypeCharDev
	case "-b":
		return a.Type == vfs.TypeBlockDev
	case "-p":
		return a.Type == vfs.TypeFIFO
	case "-S":
		return a.Type == vfs.TypeSocket
	case "-s":
		return a.Size > 0
	case "-k":
		return a.Mode&vfs.ModeSticky != 0
	case "-g":
		return a.Mode&vfs.ModeSetGID != 0
	case "-u":
		return a.Mode&vfs.ModeSetUID != 0
	case "-O":
		return a.UID == sh.cfg.Cred.UID
	case "-G":
		return a.GID == sh.cfg.Cred.GID
	case "-N":
		return a.Mtime > a.Atime
	}
	return false
}

// isSet is -v: a variable, an element or, with [@], any element.
func (sh *shell) isSet(s string) bool {
	if _, ok := sh.specialParameter(s); ok && s != "" {
		p, _ := sh.specialParameter(s)
		return p.set
	}
	r, ok := parseRef(s)
	if !ok {
		return false
	}
	if r.hasSub {
		r.sub = sh.subscriptText(r.name, r.sub)
	}
	p := sh.find(r)
	return p.set
}

// optionOn is -o.
func (sh *shell) optionOn(name string) bool {
	for i, n := range setNames {
		if n == name {
			return sh.on(i)
		}
	}
	return false
}

var unaryOps = "-a -b -c -d -e -f -g -h -k -n -o -p -r -s -t -u -v -w -x -z -G -L -N -O -R -S"

func isUnaryOp(s string) bool {
	return len(s) == 2 && s[0] == '-' && strings.Contains(unaryOps, s)
}
