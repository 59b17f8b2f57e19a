package compare

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var patchOptions = getopt.New("bd:EfF:i:lNo:p:r:Rstu", "backup=b", "directory:=d", "remove-empty-files=E", "force=f",
	"fuzz:=F", "input:=i", "ignore-whitespace=l", "forward=N", "output:=o", "strip:=p", "reject-file:=r", "reverse=R",
	"quiet=s", "silent=s", "batch=t", "dry-run", "unified=u", "verbose", "no-backup-if-mismatch", "merge::", "posix",
	"suffix:", "binary")

// patcher is what one patch does.
type patcher struct {
	*tool.Call
	ctx                                                 context.Context
	strip                                               int // -1: the base name
	fuzz                                                int
	reverse, forward, force, dry, quiet, backup, spaces bool
	remove                                              bool
	output, rejects                                     string
}

func patch(ctx context.Context, c *tool.Call) error {
	options, operands, err := c.Options(patchOptions, 2)
	if err != nil {
		return err
	}
	p := &patcher{Call: c, ctx: ctx, strip: -1, fuzz: 2}
	from, dir := "-", ""
	for _, o := range options {
		switch o.Name {
		case "i":
			from = o.Value
		case "d":
			dir = o.Value
		case "p", "F":
			n, err := strconv.Atoi(o.Value)
			if err != nil || n < 0 {
				return c.Die(2, "strip count %s is not a number", o.Value)
			}
			if o.Name == "p" {
				p.strip = n
			} else {
				p.fuzz = n
			}
		default:
			p.set(o)
		}
	}
	if len(operands) > 1 && from == "-" {
		from = operands[1]
	}
	data, err := c.ReadFile(ctx, from)
	if err != nil {
		return c.Die(2, "**** Can't open patch file %s : %s", from, command.Reason(err))
	}
	if dir != "" {
		c.FS = c.FS.At(dir)
	}
	files, err := parsePatch(string(data))
	switch {
	case err != nil:
		return c.Die(2, "**** %s", err)
	case len(files) == 0 && len(strings.TrimSpace(string(data))) > 0:
		return c.Die(2, "**** Only garbage was found in the patch input.")
	}
	for i := range files {
		name := ""
		if len(operands) > 0 {
			name = operands[0]
		}
		if err := p.file(&files[i], name); err != nil {
			return err
		}
	}
	return nil
}

func (p *patcher) set(o getopt.Option) {
	switch o.Name {
	case "R":
		p.reverse = true
	case "N":
		p.forward = true
	case "f", "t":
		p.force = true
	case "s":
		p.quiet = true
	case "b":
		p.backup = true
	case "E":
		p.remove = true
	case "l":
		p.spaces = true
	case "o":
		p.output = o.Value
	case "r":
		p.rejects = o.Value
	case "dry-run":
		p.dry = true
	}
}

// stripped cuts the leading elements of a name off.
func (p *patcher) stripped(name string) string {
	if name == "/dev/null" || name == "" {
		return name
	}
	if p.strip < 0 {
		return path.Base(name)
	}
	for range p.strip {
		_, rest, ok := strings.Cut(name, "/")
		if !ok {
			return ""
		}
		name = strings.TrimLeft(rest, "/")
	}
	return name
}

// choose returns which of a patch's names is to be patched: one that is there, the shorter one first.
func (p *patcher) choose(f *filePatch) string {
	old, new := p.stripped(f.old), p.stripped(f.new)
	there := func(name string) bool {
		_, err := p.FS.Stat(p.ctx, name)
		return name != "" && name != "/dev/null" && err == nil
	}
	switch {
	case old == "/dev/null":
		return new
	case new == "/dev/null":
		return old
	case there(old) && there(new) && len(old) <= len(new):
		return old
	case there(new):
		return new
	case there(old):
		return old
	}
	return new
}

// outside says whether a name leads out of the directory that is patched.
func outside(name string) bool {
	clean := path.Clean(name)
	return strings.HasPrefix(name, "/") || clean == ".." || strings.HasPrefix(clean, "../")
}

func (p *patcher) say(format string, args ...any) {
	if !p.quiet {
		fmt.Fprintf(p.Out, format, args...)
	}
}

func (p *patcher) file(f *filePatch, name string) error {
	if p.reverse {
		f.reverse()
	}
	if name == "" {
		name = p.choose(f)
		if outside(name) {
			p.say("Ignoring potentially dangerous file name %s\n", name)
			name = ""
		}
	}
	if name == "" {
		p.say("can't find file to patch at input line 3\nPerhaps you used the wrong -p or --strip option?\n")
		p.say("File to patch: \nSkip this patch? [y] \nSkipping patch.\n%d out of %d %s ignored\n", len(f.hunks), len(f.hunks),
			plural(len(f.hunks)))
		p.Status = 1
		return nil
	}
	data, err := p.FS.ReadFile(p.ctx, name, 0)
	if errors.Is(err, vfs.ErrNotExist) && p.creates(f) {
		data, err = nil, nil
	}
	if err != nil {
		if tool.Ends(p.ctx, err) {
			return err
		}
		p.say("can't find file to patch at input line 3\nPerhaps you used the wrong -p or --strip option?\n")
		p.Status = 1
		return nil
	}
	if err := p.Take(int64(3 * len(data))); err != nil {
		return err
	}
	switch {
	case p.dry:
		p.say("checking file %s\n", name)
	case p.output != "":
		p.say("patching file %s (read from %s)\n", p.output, name)
	default:
		p.say("patching file %s\n", name)
	}
	return p.apply(f, name, data)
}

// creates says whether a patch makes a file that was not there.
func (p *patcher) creates(f *filePatch) bool {
	return f.old == "/dev/null" || len(f.hunks) == 1 && f.hunks[0].oldN == 0
}

func plural(n int) string {
	if n == 1 {
		return "hunk"
	}
	return "hunks"
}

func (p *patcher) apply(f *filePatch, name string, data []byte) error {
	a := newApplication(p, data)
	if p.reversed(f, a) {
		p.say("Reversed (or previously applied) patch detected!  Skipping patch.\n")
		p.say("%d out of %d %s ignored", len(f.hunks), len(f.hunks), plural(len(f.hunks)))
		if !p.dry {
			p.say(" -- saving rejects to file %s", p.rejectName(name))
		}
		p.say("\n")
		p.Status = 1
		return p.saveRejects(f, f.hunks, name)
	}
	var failed []hunk
	for i := range f.hunks {
		if err := p.Step(p.ctx, 10); err != nil {
			return err
		}
		ok, err := a.hunk(&f.hunks[i], i+1)
		if err != nil {
			return err
		}
		if !ok {
			failed = append(failed, f.hunks[i])
		}
	}
	if len(failed) > 0 {
		p.Status = 1
		p.say("%d out of %d %s FAILED", len(failed), len(f.hunks), plural(len(f.hunks)))
		if !p.dry {
			p.say(" -- saving rejects to file %s", p.rejectName(name))
		}
		p.say("\n")
		if err := p.saveRejects(f, failed, name); err != nil {
			return err
		}
	}
	if p.dry || len(failed) == len(f.hunks) && len(f.hunks) > 0 {
		return nil
	}
	return p.write(f, name, data, a.result())
}

// reversed says whether the first hunk does not apply, but would the other way round.
func (p *patcher) reversed(f *filePatch, a *application) bool {
	if len(f.hunks) == 0 || p.force {
		return false
	}
	if at, _ := a.find(&f.hunks[0], 0); at >= 0 {
		return false
	}
	back := filePatch{hunks: []hunk{f.hunks[0]}}
	back.hunks[0].lines = append([]patchLine(nil), f.hunks[0].lines...)
	back.reverse()
	at, _ := a.find(&back.hunks[0], 0)
	return at >= 0 && back.hunks[0].oldN > 0
}

func (p *patcher) rejectName(name string) string {
	if p.rejects != "" {
		return p.rejects
	}
	return name + ".rej"
}

func (p *patcher) saveRejects(f *filePatch, hunks []hunk, name string) error {
	if p.dry || p.rejects == "-" {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", f.old, f.new)
	for _, h := range hunks {
		old, new := h.start, h.newStart
		if h.oldN == 0 {
			old--
		}
		fmt.Fprintf(&b, "@@ -%s +%s @@\n", rejectSpan(old, h.oldN), rejectSpan(new, h.newN))
		for _, l := range h.lines {
			fmt.Fprintf(&b, "%c%s\n", l.mark, l.text)
		}
	}
	return p.FS.WriteFile(p.ctx, p.rejectName(name), []byte(b.String()), 0o666)
}

func rejectSpan(start, n int) string {
	if n == 1 {
		return strconv.Itoa(start)
	}
	return fmt.Sprintf("%d,%d", start, n)
}

func (p *patcher) write(f *filePatch, name string, old, data []byte) error {
	if p.backup && old != nil {
		if err := p.FS.WriteFile(p.ctx, name+".orig", old, 0o666); err != nil {
			return err
		}
	}
	if p.output != "" {
		return p.FS.WriteFile(p.ctx, p.output, data, 0o666)
	}
	if len(data) == 0 && (f.new == "/dev/null" || p.remove) {
		return p.FS.Remove(p.ctx, name)
	}
	if dir := path.Dir(name); old == nil && dir != "." {
		if err := p.FS.MkdirAll(p.ctx, dir, 0o777); err != nil {
			return err
		}
	}
	mode := uint32(0o666)
	if f.mode != 0 {
		mode = f.mode
	}
	if err := p.FS.WriteFile(p.ctx, name, data, mode); err != nil {
		return p.Die(2, "**** Can't write file %s : %s", name, command.Reason(err))
	}
	if to := p.stripped(f.new); f.rename && to != "" && to != name && !outside(to) {
		return p.FS.Rename(p.ctx, name, to)
	}
	return nil
}
