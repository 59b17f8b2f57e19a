package text

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var uniqOptions = getopt.New("cdDf:is:uw:z", "count=c", "repeated=d", "all-repeated::=D", "group::", "skip-fields:=f",
	"ignore-case=i", "skip-chars:=s", "unique=u", "check-chars:=w", "zero-terminated=z")

// uniqer is what one uniq shows.
type uniqer struct {
	*tool.Call
	count, repeated, unique, fold bool
	groupAll                      bool   // --group
	all                           bool   // every line of the groups that are shown
	separate                      string // "", none, prepend, append, both or separate groups
	fields, chars, width          int
	end                           byte

	line   []byte // the group's first
	rest   [][]byte
	n      int
	groups int
}

func uniq(ctx context.Context, c *tool.Call) error {
	options, files, err := c.Options(uniqOptions, 1)
	if err != nil {
		return err
	}
	u := &uniqer{Call: c, width: -1, end: '\n'}
	for _, o := range options {
		if err := u.set(o); err != nil {
			return err
		}
	}
	if err := u.agree(); err != nil {
		return err
	}
	if len(files) > 2 {
		return c.Usage(1, "extra operand '%s'", files[2])
	}
	if len(files) == 2 && files[1] != "-" {
		f, err := c.FS.CreateFile(ctx, files[1])
		if err != nil {
			return c.Die(1, "%s: %s", files[1], command.Reason(err))
		}
		defer f.Close()
		c.Out.Reset(f)
		files = files[:1]
	}
	if err := c.Each(ctx, files, u.file); err != nil {
		return err
	}
	return c.Out.Flush()
}

func (u *uniqer) set(o getopt.Option) error {
	number := func(to *int, what string) error {
		n, err := tool.Count(o.Value, 10, "")
		if err != nil && !errors.Is(err, tool.ErrRange) {
			return u.Die(1, "%s: invalid number of %s", o.Value, what)
		}
		*to = int(n)
		return nil
	}
	switch o.Name {
	case "c":
		u.count = true
	case "d":
		u.repeated = true
	case "D":
		u.repeated, u.all = true, true
		if o.Given {
			return u.setSeparate(o, "none", "prepend", "separate")
		}
	case "group":
		u.all, u.groupAll, u.separate = true, true, "separate"
		if o.Given {
			return u.setSeparate(o, "prepend", "append", "separate", "both")
		}
	case "i":
		u.fold = true
	case "u":
		u.unique = true
	case "z":
		u.end = 0
	case "f":
		return number(&u.fields, "fields to skip")
	case "s":
		return number(&u.chars, "bytes to skip")
	case "w":
		return number(&u.width, "bytes to compare")
	}
	return nil
}

// setSeparate reads where empty lines go: one of ways, or the beginning of one.
func (u *uniqer) setSeparate(o getopt.Option, ways ...string) error {
	var found []string
	for _, way := range ways {
		if o.Value == way {
			u.separate = way
			return nil
		}
		if strings.HasPrefix(way, o.Value) {
			found = append(found, way)
		}
	}
	if len(found) == 1 {
		u.separate = found[0]
		return nil
	}
	kind := "invalid"
	if len(found) > 1 {
		kind = "ambiguous"
	}
	u.Say("%s argument '%s' for '%s'", kind, o.Value, map[bool]string{true: "--group", false: "--all-repeated"}[u.groupAll])
	fmt.Fprintln(u.Stderr, "Valid arguments are:")
	for _, way := range ways {
		fmt.Fprintf(u.Stderr, "  - '%s'\n", way)
	}
	fmt.Fprintln(u.Stderr, "Try 'uniq --help' for more information.")
	return tool.Exit(1)
}

// agree refuses options that contradict each other.
func (u *uniqer) agree() error {
	switch {
	case u.groupAll && (u.count || u.repeated || u.unique):
		return u.Usage(1, "--group is mutually exclusive with -c/-d/-D/-u")
	case u.all && u.count:
		return u.Usage(1, "printing all duplicated lines and repeat counts is meaningless")
	}
	return nil
}

func (u *uniqer) file(_ string, in *tool.Input) error {
	lines := u.Records(in, u.end)
	for line, ok := lines.Next(); ok; line, ok = lines.Next() {
		if u.n > 0 && u.same(u.key(u.line), u.key(line)) {
			u.n++
			if u.all {
				u.rest = append(u.rest, bytes.Clone(line))
				if err := u.Take(int64(len(line)) + 48); err != nil { // with what leads to it
					return err
				}
			}
			continue
		}
		if err := u.flush(); err != nil {
			return err
		}
		u.line, u.rest, u.n = append(u.line[:0], line...), nil, 1
	}
	if lines.Err() != nil {
		return lines.Err()
	}
	err := u.flush()
	if u.groups > 0 && (u.separate == "append" || u.separate == "both") {
		err = u.Out.WriteByte(u.end)
	}
	return err
}

func (u *uniqer) same(a, b []byte) bool {
	if u.fold {
		return bytes.EqualFold(a, b)
	}
	return bytes.Equal(a, b)
}

// key is the part of a line that is compared.
func (u *uniqer) key(line []byte) []byte {
	for range u.fields {
		line = bytes.TrimLeft(line, " \t")
		if i := bytes.IndexAny(line, " \t"); i >= 0 {
			line = line[i:]
		} else {
			return nil
		}
	}
	line = line[min(u.chars, len(line)):]
	if u.width >= 0 && u.width < len(line) {
		line = line[:u.width]
	}
	return line
}

// flush shows the group that has ended, if it is to be shown.
func (u *uniqer) flush() error {
	if u.n == 0 || u.repeated && u.n == 1 || u.unique && u.n > 1 {
		return nil
	}
	if u.groups++; u.separate == "prepend" || u.separate == "both" || u.groups > 1 && (u.separate == "separate" || u.separate == "append") {
		_ = u.Out.WriteByte(u.end)
	}
	if u.count {
		fmt.Fprintf(u.Out, "%7d ", u.n)
	}
	_, _ = u.Out.Write(u.line)
	err := u.Out.WriteByte(u.end)
	for _, line := range u.rest {
		_, _ = u.Out.Write(line)
		err = u.Out.WriteByte(u.end)
	}
	return err
}
