package file

import (
	"context"
	"errors"
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
	create, text, base := true, "", int64(-1)
	for _, o := range options {
		switch o.Name {
		case "c":
			create = false
		case "s":
			text = o.Value
		case "r":
			a, err := c.FS.Stat(ctx, o.Value)
			if err != nil {
				return c.Die(1, "cannot stat '%s': %s", o.Value, command.Reason(err))
			}
			base = int64(a.Size)
		}
	}
	switch {
	case text == "" && base < 0:
		return c.Usage(1, "you must specify either '--size' or '--reference'")
	case len(names) == 0:
		return c.Usage(1, "missing file operand")
	}
	for _, name := range names {
		if err := resize(ctx, c, name, text, base, create); err != nil {
			return err
		}
	}
	return nil
}

func resize(ctx context.Context, c *tool.Call, name, text string, base int64, create bool) error {
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
	size, ok := newSize(text, base)
	if !ok {
		return c.Die(1, "Invalid number: '%s'", text)
	}
	if err := f.Truncate(uint64(size)); err != nil {
		return c.FaultAt(ctx, "failed to truncate '"+name+"' at "+strconv.FormatInt(size, 10)+" bytes", err)
	}
	return nil
}

// newSize applies +N, -N, <N, >N, /N and %N to a size; N alone is the size.
func newSize(text string, base int64) (int64, bool) {
	if text == "" {
		return base, true
	}
	op := text[0]
	if strings.IndexByte("+-<>/%", op) >= 0 {
		text = text[1:]
	} else {
		op = 0
	}
	n, err := tool.Size(text)
	if err != nil || (op == '/' || op == '%') && n == 0 {
		return 0, false
	}
	switch op {
	case '+':
		return base + n, true
	case '-':
		return max(base-n, 0), true
	case '<':
		return min(base, n), true
	case '>':
		return max(base, n), true
	case '/':
		return base / n * n, true
	case '%':
		return (base + n - 1) / n * n, true
	}
	return n, true
}
