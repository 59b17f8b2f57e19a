package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/datetime"
	"github.com/carrelfs/carrel/execd/shell/command/mode"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// read lists or extracts. The archive's own name is resolved in fs, which -C has not changed.
func (t *tarrer) read(fs treepath.FS) error {
	if err := t.readNames(); err != nil {
		return err
	}
	in, closing, err := t.open(fs)
	if err != nil {
		return err
	}
	defer closing()
	r := tar.NewReader(in)
	for first := true; ; first = false {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if t.ctx.Err() != nil {
				return err
			}
			if first || errors.Is(err, tar.ErrHeader) {
				t.Say("This does not look like a tar archive")
				t.Status = 2
				return t.finish()
			}
			t.Say("Unexpected EOF in archive")
			return t.Die(2, "Error is not recoverable: exiting now")
		}
		if err := t.member(r, h); err != nil {
			return err
		}
	}
	if err := t.directoryTimes(); err != nil {
		return err
	}
	for _, m := range t.members {
		if !t.seen[m.name] {
			t.Say("%s: Not found in archive", m.name)
			t.Status = 2
		}
	}
	return t.finish()
}

// wanted says whether a member was asked for: by name, by a directory above it, or by a pattern.
func (t *tarrer) wanted(name string) bool {
	if len(t.members) == 0 {
		return true
	}
	name = strings.TrimRight(name, "/")
	found := false
	for _, m := range t.members {
		asked := strings.TrimRight(m.name, "/")
		if name == asked || strings.HasPrefix(name, asked+"/") || t.wildcards && tool.Glob(asked, name, false) {
			t.seen[m.name] = true
			found = true
		}
	}
	return found
}

func (t *tarrer) member(r *tar.Reader, h *tar.Header) error {
	if err := t.Step(t.ctx, 5); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeXGlobalHeader || !t.wanted(h.Name) || t.excluded(h.Name) {
		return nil
	}
	if t.action == 't' {
		return t.list(h)
	}
	name := t.stripped(h.Name)
	if name == "" {
		return nil
	}
	name = t.below(t.transformed(name))
	if h.Typeflag == tar.TypeSymlink {
		h.Linkname = t.transformed(h.Linkname)
	}
	if t.verbose > 0 {
		fmt.Fprintln(t.listing, h.Name)
	}
	if t.toStdout {
		if h.Typeflag != tar.TypeReg {
			return nil
		}
		_, err := io.Copy(t.Out, r)
		return err
	}
	if err := t.extract(r, h, name); err != nil {
		if tool.Ends(t.ctx, err) {
			return err
		}
		t.Say("%s: Cannot open: %s", name, command.Reason(err))
		t.Status = 2
	}
	return nil
}

// stripped cuts --strip-components and what leads out of the directory off a name.
func (t *tarrer) stripped(name string) string {
	for range t.strip {
		_, rest, ok := strings.Cut(name, "/")
		if !ok {
			return ""
		}
		name = strings.TrimLeft(rest, "/")
	}
	if name == "" {
		return ""
	}
	return t.relative(name)
}

func attrOf(h *tar.Header) vfs.Attr {
	kinds := map[byte]vfs.Type{tar.TypeDir: vfs.TypeDir, tar.TypeSymlink: vfs.TypeSymlink, tar.TypeFifo: vfs.TypeFIFO,
		tar.TypeChar: vfs.TypeCharDev, tar.TypeBlock: vfs.TypeBlockDev}
	kind, ok := kinds[h.Typeflag]
	if !ok {
		kind = vfs.TypeRegular
	}
	return vfs.Attr{Type: kind, Mode: uint32(h.Mode) & vfs.ModeMask, Size: uint64(h.Size)}
}

func (t *tarrer) list(h *tar.Header) error {
	if t.verbose == 0 {
		_, err := t.Out.WriteString(h.Name + "\n")
		return err
	}
	letters := mode.String(attrOf(h))
	name := h.Name
	switch h.Typeflag {
	case tar.TypeSymlink:
		name += " -> " + h.Linkname
	case tar.TypeLink:
		name += " link to " + h.Linkname
		letters = "h" + letters[1:]
	}
	user, group := h.Uname, h.Gname
	if user == "" || t.numeric {
		user = fmt.Sprint(h.Uid)
	}
	if group == "" || t.numeric {
		group = fmt.Sprint(h.Gid)
	}
	owner := user + "/" + group
	size := fmt.Sprint(h.Size)
	pad := max(19-len(owner)-1-len(size), 0)
	_, err := fmt.Fprintf(t.Out, "%s %s %s%s %s %s\n", letters, owner, strings.Repeat(" ", pad), size,
		datetime.Format(h.ModTime.In(t.Zone(t.ctx)), "%Y-%m-%d %H:%M"), name)
	return err
}

func (t *tarrer) extract(r *tar.Reader, h *tar.Header, name string) error {
	if dir := path.Dir(strings.TrimRight(name, "/")); dir != "." && dir != "/" {
		if err := t.FS.MkdirAll(t.ctx, dir, 0o777); err != nil {
			return err
		}
	}
	if h.Typeflag == tar.TypeDir {
		return t.directory(h, name)
	}
	if _, err := t.FS.Lstat(t.ctx, name); err == nil {
		switch {
		case t.keep:
			return vfs.ErrExist
		case t.skip:
			return nil
		}
		if err := t.FS.Remove(t.ctx, name); err != nil {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeSymlink:
		return t.FS.Symlink(t.ctx, h.Linkname, name)
	case tar.TypeLink:
		return t.FS.Link(t.ctx, t.below(t.transformed(t.stripped(h.Linkname))), name)
	case tar.TypeFifo:
		return t.FS.Mkfifo(t.ctx, name, uint32(h.Mode)&0o777)
	case tar.TypeChar, tar.TypeBlock:
		return vfs.ErrNotSupported
	}
	f, err := t.FS.OpenFile(t.ctx, name, treepath.Write|treepath.Create|treepath.Exclusive, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(onlyWriter{f}, r, make([]byte, 256<<10))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return t.attributes(h, name)
}

// onlyWriter hides ReadFrom, so that CopyBuffer uses its buffer.
type onlyWriter struct{ io.Writer }

func (t *tarrer) directory(h *tar.Header, name string) error {
	err := t.FS.Mkdir(t.ctx, strings.TrimRight(name, "/"), 0o777)
	if err != nil && !errors.Is(err, vfs.ErrExist) {
		return err
	}
	if err == nil {
		copied := *h
		copied.Name = name
		t.dirs = append(t.dirs, &copied)
	}
	return nil
}

// directoryTimes sets what extracting into directories would have changed again.
func (t *tarrer) directoryTimes() error {
	for i := len(t.dirs) - 1; i >= 0; i-- {
		if err := t.attributes(t.dirs[i], t.dirs[i].Name); err != nil {
			return err
		}
	}
	return nil
}

// attributes gives a node its mode and time, and its owner where root may.
func (t *tarrer) attributes(h *tar.Header, name string) error {
	bits := uint32(h.Mode) & vfs.ModeMask
	if t.FS.Cred.UID != 0 {
		bits &= 0o777 &^ t.FS.Umask
	} else if err := t.FS.Chown(t.ctx, name, uint32(h.Uid), uint32(h.Gid), false); err != nil {
		return err
	}
	if err := t.FS.Chmod(t.ctx, name, bits); err != nil {
		return err
	}
	if t.noTouch {
		return nil
	}
	then := vfs.TimeOf(h.ModTime)
	return t.FS.Chtimes(t.ctx, name, nil, &then, false)
}
