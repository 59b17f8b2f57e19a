package file

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/datetime"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var touchOptions = getopt.New("acd:fhmr:t:", "no-create=c", "date:=d", "no-dereference=h", "reference:=r", "time:")

// toucher is what one touch does.
type toucher struct {
	*tool.Call
	access, modify bool
	create, follow bool
	atime, mtime   vfs.Time
}

func touch(ctx context.Context, c *tool.Call) error {
	options, names, err := c.Options(touchOptions, 1)
	if err != nil {
		return err
	}
	now := vfs.TimeOf(c.Now())
	t := &toucher{Call: c, create: true, follow: true, atime: now, mtime: now}
	for _, o := range options {
		if err := t.set(ctx, o); err != nil {
			return err
		}
	}
	if !t.access && !t.modify {
		t.access, t.modify = true, true
	}
	if len(names) == 0 {
		return c.Usage(1, "missing file operand")
	}
	for _, name := range names {
		if err := t.touch(ctx, name); err != nil {
			if err = c.FaultAt(ctx, "cannot touch '"+name+"'", err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *toucher) set(ctx context.Context, o getopt.Option) error {
	switch o.Name {
	case "a":
		t.access = true
	case "m":
		t.modify = true
	case "c":
		t.create = false
	case "h":
		t.follow = false
	case "time":
		t.access = t.access || o.Value == "access" || o.Value == "atime" || o.Value == "use"
		t.modify = t.modify || o.Value == "modify" || o.Value == "mtime"
	case "r":
		a, err := t.FS.Stat(ctx, o.Value)
		if err != nil {
			return t.Die(1, "failed to get attributes of '%s': %s", o.Value, command.Reason(err))
		}
		t.atime, t.mtime = a.Atime, a.Mtime
	case "d":
		when, err := datetime.Parse(o.Value, t.Now().In(t.Zone(ctx)))
		if err != nil {
			return t.Die(1, "invalid date format '%s'", o.Value)
		}
		t.atime, t.mtime = vfs.TimeOf(when), vfs.TimeOf(when)
	case "t":
		when, ok := parseStamp(o.Value, t.Now().In(t.Zone(ctx)))
		if !ok {
			return t.Die(1, "invalid date format '%s'", o.Value)
		}
		t.atime, t.mtime = vfs.TimeOf(when), vfs.TimeOf(when)
	}
	return nil
}

// parseStamp reads [[CC]YY]MMDDhhmm[.ss].
func parseStamp(text string, now time.Time) (time.Time, bool) {
	digits, seconds, _ := strings.Cut(text, ".")
	year := now.Format("2006")
	switch len(digits) {
	case 8:
	case 10:
		century := "20"
		if n, err := strconv.Atoi(digits[:2]); err == nil && n >= 69 {
			century = "19"
		}
		year, digits = century+digits[:2], digits[2:]
	case 12:
		year, digits = digits[:4], digits[4:]
	default:
		return now, false
	}
	if seconds == "" {
		seconds = "00"
	}
	t, err := time.ParseInLocation("20060102150405", year+digits+seconds, now.Location())
	return t, err == nil
}

func (t *toucher) touch(ctx context.Context, name string) error {
	_, err := t.FS.Lstat(ctx, name)
	if t.follow && err == nil {
		_, err = t.FS.Stat(ctx, name)
	}
	if errors.Is(err, vfs.ErrNotExist) {
		if !t.create {
			return nil
		}
		f, err := t.FS.OpenFile(ctx, name, treepath.Write|treepath.Create, 0o666)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	atime, mtime := &t.atime, &t.mtime
	if !t.access {
		atime = nil
	}
	if !t.modify {
		mtime = nil
	}
	return t.FS.Chtimes(ctx, name, atime, mtime, t.follow)
}

var truncateOptions = getopt.New("cor:s:", "no-create=c", "io-blocks=o", "reference:=r", "size:=s")

func truncate(ctx context.Context, c *tool.Call) error {
	options, names, err := c.Options(truncateOptions, 1)
	if err != nil {
		return err
	}
	create, given, base := true, false, int64(-1)
	to := newSize{op: '+'} // what is without -s: the size of the reference
	for _, o := range options {
		switch o.Name {
		case "c":
			create = false
		case "s":
			if to, err = parseSize(c, o.Value); err != nil {
				return err
			}
			given = true
		case "r":
			a, err := c.FS.Stat(ctx, o.Value)
			if err != nil {
				return c.Die(1, "cannot stat '%s': %s", o.Value, command.Reason(err))
			}
			base = int64(a.Size)
		}
	}
	switch {
	case !given && base < 0:
		return c.Usage(1, "you must specify either '--size' or '--reference'")
	case len(names) == 0:
		return c.Usage(1, "missing file operand")
	}
	for _, name := range names {
		if err := resize(ctx, c, name, to, base, create); err != nil {
			return err
		}
	}
	return nil
}

func resize(ctx context.Context, c *tool.Call, name string, to newSize, base int64, create bool) error {
	flag := treepath.Write
	if create {
		flag |= treepath.Create
	}
	f, err := c.FS.OpenFile(ctx, name, flag, 0o666)
	if err != nil {
		if !create && errors.Is(err, vfs.ErrNotExist) {
			return nil
		}
		return c.FaultAt(ctx, "cannot open '"+name+"' for writing", err)
	}
	defer f.Close()
	a, err := f.Stat()
	if err != nil {
		return err
	}
	if base < 0 {
		base = int64(a.Size)
	}
	size, fits := to.size(base)
	if !fits {
		c.Fault("overflow %s '%s'", map[byte]string{'+': "extending size of file", '%': "rounding up size of file"}[to.op], name)
		return nil
	}
	if err := f.Truncate(uint64(size)); err != nil {
		return c.FaultAt(ctx, "failed to truncate '"+name+"' at "+strconv.FormatInt(size, 10)+" bytes", err)
	}
	return nil
}

// newSize is what a file's size becomes: n, or what op makes of n and the size that it has.
type newSize struct {
	op byte // + - < > / %, or 0
	n  int64
}

// parseSize reads the value of -s.
func parseSize(c *tool.Call, text string) (to newSize, err error) {
	rest := strings.TrimLeft(text, " \t\n\v\f\r")
	if rest != "" && strings.IndexByte("+-<>/%", rest[0]) >= 0 {
		to.op, rest = rest[0], rest[1:]
	}
	if strings.HasPrefix(rest, "+") || strings.HasPrefix(rest, "-") {
		return to, c.Die(1, "Invalid number: '%s'", text)
	}
	if to.n, err = c.Number("Invalid number", rest, tool.Bounds{High: math.MaxInt64, Suffixes: "EgGkKmMPtTYZ0"}); err != nil {
		return to, err
	}
	if to.n == 0 && (to.op == '/' || to.op == '%') {
		return to, c.Die(1, "division by zero")
	}
	return to, nil
}

// size applies it to a size; what does not fit in 63 bits is refused.
func (to newSize) size(base int64) (size int64, fits bool) {
	n := to.n
	switch to.op {
	case '+':
		return base + n, base <= math.MaxInt64-n
	case '-':
		return max(base-n, 0), true
	case '<':
		return min(base, n), true
	case '>':
		return max(base, n), true
	case '/':
		return base / n * n, true
	case '%':
		if base%n == 0 {
			return base, true
		}
		up := n - base%n
		return base + up, base <= math.MaxInt64-up
	}
	return n, true
}
