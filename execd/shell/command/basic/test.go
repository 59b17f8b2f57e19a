package basic

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// tester evaluates the arguments of test(1): by their number where POSIX says how, by precedence beyond.
type tester struct {
	*tool.Call
	ctx  context.Context
	args []string
	err  error
}

func test(ctx context.Context, c *tool.Call) error {
	t := &tester{Call: c, ctx: ctx, args: c.Args[1:]}
	if c.Name == "[" {
		if len(t.args) == 0 || t.args[len(t.args)-1] != "]" {
			return c.Die(2, "missing ']'")
		}
		t.args = t.args[:len(t.args)-1]
	}
	result := t.count()
	if t.err != nil {
		return c.Die(2, "%s", t.err)
	}
	if !result {
		return tool.Exit(1)
	}
	return nil
}

func (t *tester) fail(format string, args ...any) bool {
	if t.err == nil {
		t.err = fmt.Errorf(format, args...)
	}
	return false
}

// count decides by the number of arguments.
func (t *tester) count() bool {
	a := t.args
	switch len(a) {
	case 0:
		return false
	case 1:
		return a[0] != ""
	case 2:
		if a[0] == "!" {
			return a[1] == ""
		}
		return t.unary(a[0], a[1])
	case 3:
		switch {
		case isBinary(a[1]):
			return t.binary(a[0], a[1], a[2])
		case a[0] == "!":
			t.args = a[1:]
			return !t.count()
		case a[0] == "(" && a[2] == ")":
			return a[1] != ""
		case a[1] == "-a" || a[1] == "-o":
		default:
			return t.fail("'%s': binary operator expected", a[1])
		}
	case 4:
		if a[0] == "!" {
			t.args = a[1:]
			return !t.count()
		}
		if a[0] == "(" && a[3] == ")" {
			t.args = a[1:3]
			return t.count()
		}
	}
	result := t.or()
	if len(t.args) > 0 {
		return t.fail("extra argument '%s'", t.args[0])
	}
	return result
}

func (t *tester) take(word string) bool {
	if len(t.args) > 0 && t.args[0] == word {
		t.args = t.args[1:]
		return true
	}
	return false
}

func (t *tester) or() bool {
	result := t.and()
	for t.take("-o") {
		result = t.and() || result
	}
	return result
}

func (t *tester) and() bool {
	result := t.not()
	for t.take("-a") {
		result = t.not() && result
	}
	return result
}

func (t *tester) not() bool {
	if len(t.args) > 1 && t.args[0] == "!" {
		t.args = t.args[1:]
		return !t.not()
	}
	return t.primary()
}

func (t *tester) primary() bool {
	a := t.args
	switch {
	case len(a) == 0:
		return t.fail("argument expected")
	case len(a) >= 3 && isBinary(a[1]):
		t.args = a[3:]
		return t.binary(a[0], a[1], a[2])
	case a[0] == "(" && len(a) > 1:
		t.args = a[1:]
		result := t.or()
		if !t.take(")") {
			return t.fail("')' expected")
		}
		return result
	case len(a) >= 2 && isUnary(a[0]):
		t.args = a[2:]
		return t.unary(a[0], a[1])
	}
	t.args = a[1:]
	return a[0] != ""
}

func isUnary(op string) bool {
	return len(op) == 2 && op[0] == '-' && strings.Contains("bcdefgGhkLnNOprsStuvwxz", op[1:])
}

func isBinary(op string) bool {
	switch op {
	case "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef":
		return true
	}
	return false
}

func (t *tester) unary(op, arg string) bool {
	if !isUnary(op) {
		return t.fail("'%s': unary operator expected", op)
	}
	switch op {
	case "-n":
		return arg != ""
	case "-z":
		return arg == ""
	case "-t":
		return false
	case "-r", "-w", "-x":
		want := map[string]uint32{"-r": 4, "-w": 2, "-x": 1}[op]
		return t.FS.Access(t.ctx, arg, want) == nil
	case "-h", "-L":
		a, err := t.FS.Lstat(t.ctx, arg)
		return err == nil && a.Type == vfs.TypeSymlink
	}
	a, err := t.FS.Stat(t.ctx, arg)
	if err != nil {
		return false
	}
	switch op {
	case "-s":
		return a.Size > 0
	case "-u":
		return a.Mode&vfs.ModeSetUID != 0
	case "-g":
		return a.Mode&vfs.ModeSetGID != 0
	case "-k":
		return a.Mode&vfs.ModeSticky != 0
	case "-O":
		return a.UID == t.FS.Cred.UID
	case "-G":
		return a.GID == t.FS.Cred.GID
	case "-N":
		return a.Mtime > a.Atime
	case "-e":
		return true
	}
	return a.Type == map[string]vfs.Type{"-f": vfs.TypeRegular, "-d": vfs.TypeDir, "-p": vfs.TypeFIFO, "-S": vfs.TypeSocket,
		"-b": vfs.TypeBlockDev, "-c": vfs.TypeCharDev}[op]
}

func (t *tester) binary(x, op, y string) bool {
	switch op {
	case "=", "==":
		return x == y
	case "!=":
		return x != y
	case "<":
		return x < y
	case ">":
		return x > y
	case "-nt", "-ot", "-ef":
		return t.files(x, op, y)
	}
	a, b := t.integer(x), t.integer(y)
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

func (t *tester) integer(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		t.fail("invalid integer '%s'", text)
	}
	return n
}

func (t *tester) files(x, op, y string) bool {
	a, errA := t.FS.Stat(t.ctx, x)
	b, errB := t.FS.Stat(t.ctx, y)
	switch op {
	case "-nt":
		return errA == nil && (errB != nil || a.Mtime > b.Mtime)
	case "-ot":
		return errB == nil && (errA != nil || a.Mtime < b.Mtime)
	}
	return errA == nil && errB == nil && a.Ino == b.Ino
}
