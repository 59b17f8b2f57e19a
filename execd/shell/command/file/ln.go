package file

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var lnOptions = getopt.New("bfinrsLPS:t:Tv", "force=f", "interactive=i", "no-dereference=n", "relative=r", "symbolic=s",
	"target-directory:=t", "no-target-directory=T", "verbose=v", "logical=L", "physical=P",
	"backup::=b", "suffix:=S")

// linker is what one ln does.
type linker struct {
	*tool.Call
	symbolic, force, relative, verbose, logical bool
	backups                                     backups
}

func ln(ctx context.Context, c *tool.Call) error {
	options, operands, err := c.Options(lnOptions, 1)
	if err != nil {
		return err
	}
	l := &linker{Call: c}
	target, plain, follow := "", false, true
	for _, o := range options {
		switch o.Name {
		case "f":
			l.force = true
		case "n":
			follow = false
		case "r":
			l.relative = true
		case "s":
			l.symbolic = true
		case "L":
			l.logical = true
		case "t":
			target = o.Value
		case "T":
			plain = true
		case "v":
			l.verbose = true
		}
	}
	if l.backups, err = backupsOf(c, options); err != nil {
		return err
	}
	if len(operands) == 1 && target == "" {
		target = "."
	}
	pairs, err := destinations(ctx, c, operands, target, plain, follow)
	if err != nil {
		return err
	}
	for _, p := range pairs {
		if err := l.link(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (l *linker) link(ctx context.Context, p pair) error {
	kind, arrow := "hard", "=>"
	make := l.FS.Link
	if l.symbolic {
		kind, arrow, make = "symbolic", "->", l.FS.Symlink
		if l.relative {
			p.from = l.relativeTo(ctx, p)
		}
	} else if ok, err := l.source(ctx, &p); err != nil || !ok {
		return err
	}
	backup := ""
	if l.force || l.backups.kind != 0 {
		if a, err := l.FS.Lstat(ctx, p.to); err == nil && a.Type != vfs.TypeDir {
			if from, err := l.FS.Lstat(ctx, p.from); err == nil && from.Ino == a.Ino && !l.symbolic {
				l.Fault("'%s' and '%s' are the same file", p.from, p.to)
				return nil
			}
			if backup, err = l.backups.keep(ctx, l.Call, p.to); err != nil {
				return l.FaultAt(ctx, "cannot backup '"+p.to+"'", err)
			}
			if backup == "" {
				if err := l.FS.Remove(ctx, p.to); err != nil {
					return l.FaultAt(ctx, "cannot remove '"+p.to+"'", err)
				}
			}
		}
	}
	if err := make(ctx, p.from, p.to); err != nil {
		return l.failed(ctx, kind, p, err)
	}
	if l.verbose {
		if backup != "" {
			fmt.Fprintf(l.Out, "'%s' ~ ", backup)
		}
		fmt.Fprintf(l.Out, "'%s' %s '%s'\n", p.to, arrow, p.from)
	}
	return nil
}

func (l *linker) failed(ctx context.Context, kind string, p pair, err error) error {
	about := "failed to create " + kind + " link '" + p.to + "'"
	if kind == "hard" && !errors.Is(err, vfs.ErrExist) {
		about += " => '" + p.from + "'"
	}
	return l.FaultAt(ctx, about, err)
}

// source looks at what is to get another name.
func (l *linker) source(ctx context.Context, p *pair) (bool, error) {
	a, err := l.FS.Lstat(ctx, p.from)
	if err != nil {
		return false, l.FaultAt(ctx, "failed to access '"+p.from+"'", err)
	}
	if a.Type == vfs.TypeDir {
		l.Fault("%s: hard link not allowed for directory", p.from)
		return false, nil
	}
	if l.logical && a.Type == vfs.TypeSymlink {
		if p.from, err = l.FS.RealPath(ctx, p.from); err != nil {
			return false, l.FaultAt(ctx, "failed to access '"+p.from+"'", err)
		}
	}
	return true, nil
}

// relativeTo spells the source as seen from the link's directory.
func (l *linker) relativeTo(ctx context.Context, p pair) string {
	dir, err := l.FS.RealPath(ctx, path.Dir(p.to))
	if err != nil {
		return p.from
	}
	from := resolve(ctx, l.Call, p.from)
	return relative(dir, from)
}

// resolve returns the real path of a name, of which the last parts may be missing.
func resolve(ctx context.Context, c *tool.Call, name string) string {
	name = c.FS.Abs(name)
	missing := ""
	for {
		real, err := c.FS.RealPath(ctx, name)
		if err == nil {
			return path.Clean(real + "/" + missing)
		}
		if target, err := c.FS.Readlink(ctx, name); err == nil && errors.Is(err, vfs.ErrNotExist) {
			name = target
		}
		trimmed := strings.TrimRight(name, "/")
		i := strings.LastIndexByte(trimmed, '/')
		if i < 0 || trimmed == "" {
			return path.Clean("/" + missing)
		}
		missing = path.Join(trimmed[i+1:], missing)
		if name = trimmed[:i]; name == "" {
			name = "/"
		}
	}
}

// relative returns the way from a directory to a path, both absolute and clean.
func relative(dir, to string) string {
	if dir == to {
		return "."
	}
	a, b := strings.Split(strings.Trim(dir, "/"), "/"), strings.Split(strings.Trim(to, "/"), "/")
	if dir == "/" {
		a = nil
	}
	if to == "/" {
		b = nil
	}
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	up := strings.Repeat("../", len(a)-i)
	return strings.TrimSuffix(up+strings.Join(b[i:], "/"), "/")
}

var readlinkOptions = getopt.New("efmnqsvz", "canonicalize=f", "canonicalize-existing=e", "canonicalize-missing=m",
	"no-newline=n", "quiet=q", "silent=s", "verbose=v", "zero=z")

func readlink(ctx context.Context, c *tool.Call) error {
	options, names, err := c.Options(readlinkOptions, 1)
	if err != nil {
		return err
	}
	canonical, verbose, end := byte(0), false, "\n"
	for _, o := range options {
		switch o.Name {
		case "e", "f", "m":
			canonical = o.Name[0]
		case "n":
			end = ""
		case "v":
			verbose = true
		case "z":
			end = "\x00"
		}
	}
	if len(names) == 0 {
		return c.Usage(1, "missing operand")
	}
	for _, name := range names {
		text, err := "", error(nil)
		if canonical != 0 {
			text, err = canonicalize(ctx, c, name, canonical)
		} else {
			text, err = c.FS.Readlink(ctx, name)
		}
		if err != nil {
			c.Status = 1
			if verbose {
				c.Say("%s: %s", name, command.Reason(err))
			}
			continue
		}
		_, _ = c.Out.WriteString(text + end)
	}
	return nil
}

// canonicalize resolves every symlink: e asks that all exists, f that all but the last does, m for nothing.
func canonicalize(ctx context.Context, c *tool.Call, name string, how byte) (string, error) {
	real, err := c.FS.RealPath(ctx, name)
	if err == nil || how == 'e' || !errors.Is(err, vfs.ErrNotExist) && how == 'f' {
		return real, err
	}
	if how == 'm' {
		return resolve(ctx, c, name), nil
	}
	if name == "" {
		return "", err
	}
	if target, linkErr := c.FS.Readlink(ctx, name); linkErr == nil {
		if !strings.HasPrefix(target, "/") {
			target = joinPath(path.Dir(c.FS.Abs(name)), target)
		}
		return canonicalize(ctx, c, target, how)
	}
	trimmed := strings.TrimRight(c.FS.Abs(name), "/")
	i := strings.LastIndexByte(trimmed, '/')
	dir, dirErr := c.FS.RealPath(ctx, trimmed[:i]+"/")
	if dirErr != nil {
		return "", dirErr
	}
	return joinPath(dir, trimmed[i+1:]), nil
}

var realpathOptions = getopt.New("eLmPqsz", "canonicalize-existing=e", "canonicalize-missing=m", "logical=L", "physical=P",
	"quiet=q", "strip=s", "no-symlinks=s", "zero=z", "relative-to:", "relative-base:")

func realpath(ctx context.Context, c *tool.Call) error {
	options, names, err := c.Options(realpathOptions, 1)
	if err != nil {
		return err
	}
	how, quiet, strip, end, base, within := byte('f'), false, false, "\n", "", ""
	for _, o := range options {
		switch o.Name {
		case "e", "m":
			how = o.Name[0]
		case "q":
			quiet = true
		case "s":
			strip = true
		case "z":
			end = "\x00"
		case "relative-to":
			base = resolve(ctx, c, o.Value)
		case "relative-base":
			within = resolve(ctx, c, o.Value)
		}
	}
	if len(names) == 0 {
		return c.Usage(1, "missing operand")
	}
	if within != "" {
		switch {
		case base == "":
			base = within
		case !isWithin(base, within):
			base = "" // nothing is relative to it
		}
	}
	for _, name := range names {
		text := path.Clean(c.FS.Abs(name))
		if !strip {
			text, err = canonicalize(ctx, c, name, how)
		}
		if err != nil {
			c.Status = 1
			if !quiet {
				c.Say("%s: %s", name, command.Reason(err))
			}
			continue
		}
		if base != "" && (within == "" || isWithin(text, within)) {
			text = relative(base, text)
		}
		_, _ = c.Out.WriteString(text + end)
	}
	return nil
}

// isWithin reports whether a path is another, or below it.
func isWithin(name, dir string) bool {
	return name == dir || dir == "/" || strings.HasPrefix(name, dir+"/")
}
