package archive

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var zipOptions = getopt.New("rqj0123456789x:i:yvmuD@X", "recurse-paths=r", "quiet=q", "junk-paths=j", "exclude:=x",
	"include:=i", "symlinks=y", "verbose=v", "move=m", "no-dir-entries=D")

// zipper is what one zip does.
type zipper struct {
	*tool.Call
	ctx                                                   context.Context
	recursive, quiet, junk, store, symlinks, noDirs, move bool
	exclude, include                                      []string
	w                                                     *zip.Writer
	self                                                  vfs.Ino
	added                                                 []string
	names                                                 map[string]bool
	pending                                               []func() // lines about members whose size was not known yet
}

func zipBody(ctx context.Context, c *tool.Call) error {
	options, operands, err := c.Options(zipOptions, 16)
	if err != nil {
		return err
	}
	z := &zipper{Call: c, ctx: ctx, names: map[string]bool{}}
	for _, o := range options {
		switch o.Name {
		case "r":
			z.recursive = true
		case "q":
			z.quiet = true
		case "j":
			z.junk = true
		case "0":
			z.store = true
		case "x":
			z.exclude = append(z.exclude, o.Value)
		case "i":
			z.include = append(z.include, o.Value)
		case "y":
			z.symlinks = true
		case "m":
			z.move = true
		case "D":
			z.noDirs = true
		}
	}
	if len(operands) < 2 {
		return c.Die(16, "zip error: Nothing to do!")
	}
	name := operands[0]
	if path.Ext(name) == "" && name != "-" {
		name += ".zip"
	}
	return z.run(name, operands[1:])
}

// run writes the archive beside the old one, of which it keeps what is not replaced, and then takes its name.
func (z *zipper) run(name string, operands []string) error {
	temp := name + ".tmp"
	f, err := z.FS.CreateFile(z.ctx, temp)
	if err != nil {
		return z.Die(15, "zip I/O error: %s\nzip error: Could not create output file (%s)", command.Reason(err), name)
	}
	if a, err := f.Stat(); err == nil {
		z.self = a.Ino
	}
	w := bufio.NewWriterSize(f, 64<<10)
	z.w = zip.NewWriter(w)
	err = z.all(name, operands)
	err = errors.Join(err, z.w.Close())
	z.flush()
	err = errors.Join(err, w.Flush(), f.Close())
	if err == nil && len(z.names) == 0 {
		fmt.Fprintf(z.Out, "\nzip error: Nothing to do! (try: zip -r %s . -i %s)\n", strings.TrimSuffix(name, ".zip"), strings.Join(operands, " "))
		err = tool.Exit(12)
	}
	if err == nil {
		err = z.FS.Rename(z.ctx, temp, name)
	}
	if err != nil {
		_ = z.FS.Remove(context.WithoutCancel(z.ctx), temp)
		return err
	}
	for i := len(z.added) - 1; z.move && i >= 0; i-- {
		if err := z.FS.Remove(z.ctx, z.added[i]); err != nil {
			return err
		}
	}
	return nil
}

func (z *zipper) all(name string, operands []string) error {
	for _, operand := range operands {
		if err := z.add(name, operand); err != nil {
			return err
		}
	}
	return z.keepOld(name)
}

// keepOld copies the members of an archive of that name that were not given anew.
func (z *zipper) keepOld(name string) error {
	old, closing, err := openZip(z.ctx, z.Call, name)
	if errors.Is(err, vfs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return z.Die(3, "zip error: Zip file structure invalid (%s)", name)
	}
	defer closing()
	for _, m := range old.File {
		if z.names[m.Name] {
			continue
		}
		z.names[m.Name] = true
		if err := z.w.Copy(m); err != nil {
			return err
		}
	}
	return nil
}

func (z *zipper) wanted(name string) bool {
	for _, p := range z.exclude {
		if tool.Glob(p, name, false) {
			return false
		}
	}
	for _, p := range z.include {
		if tool.Glob(p, name, false) {
			return true
		}
	}
	return len(z.include) == 0
}

func (z *zipper) add(archive, name string) error {
	if err := z.Step(z.ctx, 5); err != nil {
		return err
	}
	look := z.FS.Stat
	if z.symlinks {
		look = z.FS.Lstat
	}
	a, err := look(z.ctx, name)
	if err != nil {
		if tool.Ends(z.ctx, err) {
			return err
		}
		fmt.Fprintf(z.Out, "\tzip warning: name not matched: %s\n", name)
		return nil
	}
	inside := strings.TrimLeft(path.Clean(name), "/")
	for strings.HasPrefix(inside, "../") {
		inside = inside[3:]
	}
	if a.Type == vfs.TypeDir {
		return z.directory(archive, name, inside, a)
	}
	if z.junk {
		inside = path.Base(inside)
	}
	there, statErr := z.FS.Stat(z.ctx, archive)
	if a.Ino == z.self || statErr == nil && there.Ino == a.Ino || !z.wanted(inside) {
		return nil
	}
	return z.file(name, inside, a)
}

func (z *zipper) header(inside string, a vfs.Attr) *zip.FileHeader {
	h := &zip.FileHeader{Name: inside, Modified: a.Mtime.Go(), Method: zip.Deflate}
	kind := map[vfs.Type]uint32{vfs.TypeDir: 0o040000, vfs.TypeSymlink: 0o120000}[a.Type]
	if kind == 0 {
		kind = 0o100000
	}
	h.CreatorVersion = 3 << 8 // made on Unix
	h.ExternalAttrs = (kind | a.Mode) << 16
	if a.Type == vfs.TypeDir {
		h.ExternalAttrs |= 0x10
	}
	return h
}

func (z *zipper) directory(archive, name, inside string, a vfs.Attr) error {
	if inside != "." && !z.junk && !z.noDirs && z.wanted(inside+"/") {
		h := z.header(inside+"/", a)
		h.Method = zip.Store
		if _, err := z.w.CreateHeader(h); err != nil {
			return err
		}
		z.names[h.Name] = true
		z.flush()
		z.say(h.Name, 0, 0, false)
	}
	if !z.recursive {
		return nil
	}
	entries, err := z.FS.ReadDir(z.ctx, name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := z.add(archive, strings.TrimRight(name, "/")+"/"+e.Name); err != nil {
			return err
		}
	}
	z.added = append(z.added, name)
	return nil
}

func (z *zipper) say(name string, size, packed int64, deflated bool) {
	if z.quiet {
		return
	}
	how := "stored 0%"
	if deflated && size > 0 {
		how = fmt.Sprintf("deflated %d%%", (100*(size-packed)+size/2)/size)
	}
	fmt.Fprintf(z.Out, "  adding: %s (%s)\n", name, how)
}

func (z *zipper) file(name, inside string, a vfs.Attr) error {
	var in io.Reader
	if a.Type == vfs.TypeSymlink {
		target, err := z.FS.Readlink(z.ctx, name)
		if err != nil {
			return err
		}
		in = strings.NewReader(target)
	} else {
		f, err := z.Open(z.ctx, name)
		if err != nil {
			fmt.Fprintf(z.Out, "\tzip warning: could not open for reading: %s\n", name)
			z.Status = 18
			return nil
		}
		defer f.Close()
		in = f
	}
	h := z.header(inside, a)
	z.names[inside] = true
	z.added = append(z.added, name)
	if a.Size <= smallFile {
		return z.small(h, in)
	}
	if z.store {
		h.Method = zip.Store
	}
	w, err := z.w.CreateHeader(h)
	if err != nil {
		return err
	}
	z.flush()
	n, err := io.Copy(w, in)
	if err != nil {
		return err
	}
	// The writer knows the compressed size only when the next member begins, or there is none.
	z.pending = append(z.pending, func() { z.say(inside, n, int64(h.CompressedSize64), h.Method == zip.Deflate) })
	return nil
}

// smallFile is how large a file may be that is compressed in memory first, to be stored as it is when that is smaller.
const smallFile = 1 << 20

func (z *zipper) small(h *zip.FileHeader, in io.Reader) error {
	data, err := z.ReadAll(in)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.DefaultCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if z.store || packed.Len() >= len(data) {
		h.Method = zip.Store
	}
	member, err := z.w.CreateHeader(h)
	if err != nil {
		return err
	}
	z.flush()
	z.say(h.Name, int64(len(data)), int64(packed.Len()), h.Method == zip.Deflate)
	_, err = member.Write(data)
	return err
}

// flush says what could not be said before.
func (z *zipper) flush() {
	for _, f := range z.pending {
		f()
	}
	z.pending = nil
}

func openZip(ctx context.Context, c *tool.Call, name string) (*zip.Reader, func(), error) {
	f, err := c.FS.Open(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	a, err := f.Stat()
	if err == nil {
		var r *zip.Reader
		if r, err = zip.NewReader(f, int64(a.Size)); err == nil {
			return r, func() { _ = f.Close() }, nil
		}
	}
	_ = f.Close()
	return nil, nil, err
}

var unzipOptions = getopt.New("lqond:pjx:tvZ1", "list=l")

// unzipper is what one unzip does.
type unzipper struct {
	*tool.Call
	ctx                                               context.Context
	list, quiet, over, never, pipe, junk, test, plain bool
	dir                                               string
	exclude, only                                     []string
}

func unzip(ctx context.Context, c *tool.Call) error {
	options, operands, err := c.Options(unzipOptions, 10)
	if err != nil {
		return err
	}
	u := &unzipper{Call: c, ctx: ctx}
	for _, o := range options {
		switch o.Name {
		case "l", "v":
			u.list = true
		case "Z", "1":
			u.plain = true
		case "q":
			u.quiet = true
		case "o":
			u.over = true
		case "n":
			u.never = true
		case "p":
			u.pipe, u.quiet = true, true
		case "j":
			u.junk = true
		case "t":
			u.test = true
		case "d":
			u.dir = o.Value
		case "x":
			u.exclude = append(u.exclude, o.Value)
		}
	}
	if len(operands) == 0 {
		return c.Die(10, "usage: unzip [-lqonpjt] [-d dir] file[.zip] [list] [-x xlist]")
	}
	u.only = operands[1:]
	return u.run(operands[0])
}

func (u *unzipper) run(name string) error {
	r, closing, err := openZip(u.ctx, u.Call, name)
	if errors.Is(err, vfs.ErrNotExist) {
		if r2, c2, err2 := openZip(u.ctx, u.Call, name+".zip"); err2 == nil {
			r, closing, err, name = r2, c2, nil, name+".zip"
		}
	}
	if errors.Is(err, vfs.ErrNotExist) {
		return u.Die(9, " cannot find or open %s, %s.zip or %s.ZIP.", name, name, name)
	}
	if err != nil {
		return u.Die(9, "  End-of-central-directory signature not found in %s", name)
	}
	defer closing()
	switch {
	case u.plain:
		for _, m := range r.File {
			_, _ = u.Out.WriteString(m.Name + "\n")
		}
		return nil
	case u.list:
		return u.show(name, r)
	}
	if !u.quiet {
		fmt.Fprintf(u.Out, "Archive:  %s\n", name)
	}
	found := false
	for _, m := range r.File {
		if err := u.Step(u.ctx, 5); err != nil {
			return err
		}
		if !u.wanted(m.Name) {
			continue
		}
		found = true
		if err := u.member(m); err != nil {
			return err
		}
	}
	if !found && len(u.only) > 0 {
		return u.Die(11, "caution: filename not matched:  %s", strings.Join(u.only, " "))
	}
	if u.test {
		fmt.Fprintf(u.Out, "No errors detected in compressed data of %s.\n", name)
	}
	return nil
}

func (u *unzipper) wanted(name string) bool {
	for _, p := range u.exclude {
		if tool.Glob(p, name, false) {
			return false
		}
	}
	for _, p := range u.only {
		if tool.Glob(p, name, false) {
			return true
		}
	}
	return len(u.only) == 0
}

func (u *unzipper) show(name string, r *zip.Reader) error {
	fmt.Fprintf(u.Out, "Archive:  %s\n  Length      Date    Time    Name\n---------  ---------- -----   ----\n", name)
	total, n := uint64(0), 0
	for _, m := range r.File {
		if !u.wanted(m.Name) {
			continue
		}
		fmt.Fprintf(u.Out, "%9d  %s   %s\n", m.UncompressedSize64, m.Modified.In(u.Zone(u.ctx)).Format("2006-01-02 15:04"), m.Name)
		total, n = total+m.UncompressedSize64, n+1
	}
	files := "files"
	if n == 1 {
		files = "file"
	}
	_, err := fmt.Fprintf(u.Out, "---------                     -------\n%9d                     %d %s\n", total, n, files)
	return err
}

func (u *unzipper) member(m *zip.File) error {
	in, err := m.Open()
	if err != nil {
		u.Fault("%s: %s", m.Name, err)
		return nil
	}
	defer in.Close()
	counted := u.Count(u.ctx, in)
	switch {
	case u.pipe:
		_, err := io.Copy(u.Out, counted)
		return err
	case u.test:
		_, err := io.Copy(io.Discard, counted)
		if err == nil && !u.quiet {
			fmt.Fprintf(u.Out, "    testing: %-22s   OK\n", m.Name)
		}
		return err
	}
	name := m.Name
	if u.junk {
		if strings.HasSuffix(name, "/") {
			return nil
		}
		name = path.Base(name)
	}
	if name = strings.TrimLeft(name, "/"); name == "" || strings.Contains("/"+name+"/", "/../") {
		u.Fault("warning:  skipped \"../\" path component(s) in %s", m.Name)
		return nil
	}
	if u.dir != "" {
		name = strings.TrimRight(u.dir, "/") + "/" + name
	}
	return u.extract(m, counted, name)
}

func (u *unzipper) say(what, name string) {
	if !u.quiet {
		if what != "creating" {
			name = fmt.Sprintf("%-22s  ", name)
		}
		fmt.Fprintf(u.Out, "%11s: %s\n", what, name)
	}
}

func (u *unzipper) extract(m *zip.File, in io.Reader, name string) error {
	bits := m.ExternalAttrs >> 16
	if strings.HasSuffix(name, "/") {
		if _, err := u.FS.Stat(u.ctx, name); err != nil {
			u.say("creating", name)
		}
		return u.FS.MkdirAll(u.ctx, name, 0o777)
	}
	if dir := path.Dir(name); dir != "." {
		if err := u.FS.MkdirAll(u.ctx, dir, 0o777); err != nil {
			return err
		}
	}
	if _, err := u.FS.Lstat(u.ctx, name); err == nil {
		if u.never {
			return nil
		}
		if !u.over {
			if yes, err := u.Ask(u.ctx, "replace %s", name); err != nil || !yes {
				return err
			}
		}
		if err := u.FS.Remove(u.ctx, name); err != nil {
			return err
		}
	}
	if bits&0o170000 == 0o120000 {
		target, err := io.ReadAll(io.LimitReader(in, vfs.MaxSymlinkLen))
		if err != nil {
			return err
		}
		u.say("linking", name)
		return u.FS.Symlink(u.ctx, string(target), name)
	}
	f, err := u.FS.OpenFile(u.ctx, name, treepath.Write|treepath.Create|treepath.Exclusive, 0o666)
	if err != nil {
		return u.FaultAt(u.ctx, name, err)
	}
	_, err = io.CopyBuffer(onlyWriter{f}, in, make([]byte, 256<<10))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	u.say(map[bool]string{true: "extracting", false: "inflating"}[m.Method == zip.Store], name)
	if bits&0o777 != 0 {
		if err := u.FS.Chmod(u.ctx, name, bits&0o777); err != nil {
			return err
		}
	}
	then := vfs.TimeOf(m.Modified)
	return u.FS.Chtimes(u.ctx, name, nil, &then, true)
}
