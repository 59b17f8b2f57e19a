package vfstest

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// randomSteps are what Random does, each as often as its weight says.
var randomSteps = []struct {
	weight int
	do     func(r *random)
}{
	{12, (*random).doCreate},
	{6, (*random).doMkdir},
	{3, (*random).doMknod},
	{3, (*random).doSymlink},
	{6, (*random).doLink},
	{8, (*random).doUnlink},
	{4, (*random).doRmdir},
	{14, (*random).doRename},
	{5, (*random).doLookup},
	{3, (*random).doStat},
	{2, (*random).doReadlink},
	{3, (*random).doReadDir},
	{8, (*random).doSetAttr},
	{6, (*random).doTruncate},
	{16, (*random).doWrite},
	{8, (*random).doRead},
	{5, (*random).doAllocate},
	{4, (*random).doCopy},
	{4, (*random).doSeek},
	{5, (*random).doSetXattr},
	{2, (*random).doGetXattr},
	{2, (*random).doRemoveXattr},
	{4, (*random).doHold},
	{4, (*random).doRelease},
	{2, (*random).doFsync},
	{1, (*random).doCommit},
}

// once does one step.
func (r *random) once() {
	r.Helper()
	sum := 0
	for _, s := range randomSteps {
		sum += s.weight
	}
	at := r.rand.IntN(sum)
	for _, s := range randomSteps {
		if at < s.weight {
			s.do(r)
			return
		}
		at -= s.weight
	}
}

func (r *random) doCreate() {
	dir, name, n := r.dir(), r.name(), r.newNode()
	r.say("create %d/%q %+v", dir, name, n)
	r.attr(func(s side) (vfs.Attr, error) { return s.Create(r.ctx(), s.ino(dir), name, n) }, r.dirFaults(dir)...)
}

func (r *random) doMkdir() {
	if r.directories() >= randomDirs {
		r.doRmdir()
		return
	}
	dir, name, n := r.dir(), r.name(), r.newNode()
	r.say("mkdir %d/%q %+v", dir, name, n)
	r.attr(func(s side) (vfs.Attr, error) { return s.Mkdir(r.ctx(), s.ino(dir), name, n) }, r.dirFaults(dir)...)
}

func (r *random) doMknod() {
	types := []vfs.Type{vfs.TypeRegular, vfs.TypeFIFO, vfs.TypeSocket, vfs.TypeCharDev, vfs.TypeBlockDev}
	dir, name, t, n := r.dir(), r.name(), pick(r, types), r.newNode()
	r.say("mknod %d/%q type %d %+v", dir, name, t, n)
	r.attr(func(s side) (vfs.Attr, error) { return s.Mknod(r.ctx(), s.ino(dir), name, t, n) }, r.dirFaults(dir)...)
}

func (r *random) doSymlink() {
	targets := []string{"a", "../b", "/\xff", strings.Repeat("t", vfs.MaxSymlinkLen)}
	dir, name, target, n := r.dir(), r.name(), pick(r, targets), r.newNode()
	r.say("symlink %d/%q to %.10q %+v", dir, name, target, n)
	r.attr(func(s side) (vfs.Attr, error) {
		return s.Symlink(r.ctx(), s.ino(dir), name, target, n)
	}, r.dirFaults(dir)...)
}

func (r *random) doLink() {
	ino, dir, name := r.node(), r.dir(), r.name()
	r.say("link %d to %d/%q", ino, dir, name)
	r.attr(func(s side) (vfs.Attr, error) {
		return s.Link(r.ctx(), s.ino(ino), s.ino(dir), name)
	}, r.linkFaults(ino, dir, name)...)
}

func (r *random) doUnlink() {
	dir, name := r.dir(), r.name()
	r.say("unlink %d/%q", dir, name)
	r.err(func(s side) error { return s.Unlink(r.ctx(), s.ino(dir), name) }, r.dirFaults(dir)...)
}

func (r *random) doRmdir() {
	dir, name := r.dir(), r.name()
	r.say("rmdir %d/%q", dir, name)
	r.err(func(s side) error { return s.Rmdir(r.ctx(), s.ino(dir), name) }, r.dirFaults(dir)...)
}

func (r *random) doRename() {
	dir, name, newDir, newName := r.dir(), r.name(), r.dir(), r.name()
	flags := pick(r, []vfs.RenameFlags{0, 0, 0, 0, vfs.RenameNoReplace, vfs.RenameExchange, vfs.RenameExchange})
	if r.chance(1) {
		flags = vfs.RenameNoReplace | vfs.RenameExchange
	}
	r.say("rename %d/%q to %d/%q, flags %d", dir, name, newDir, newName, flags)
	done := r.err(func(s side) error {
		return s.Rename(r.ctx(), s.ino(dir), name, s.ino(newDir), newName, flags)
	}, r.renameFaults(dir, name, newDir, newName, flags)...)
	if done {
		r.stat(dir)
		r.stat(newDir)
	}
}

func (r *random) doLookup() {
	dir, name := r.dir(), r.name()
	r.say("lookup %d/%q", dir, name)
	r.attr(func(s side) (vfs.Attr, error) { return s.Lookup(r.ctx(), s.ino(dir), name) }, r.dirFaults(dir)...)
}

func (r *random) doStat() {
	ino := r.node()
	r.say("stat %d", ino)
	r.stat(ino)
}

func (r *random) stat(ino vfs.Ino) {
	r.Helper()
	r.attr(func(s side) (vfs.Attr, error) { return s.Stat(r.ctx(), s.ino(ino)) })
}

func (r *random) doReadlink() {
	ino := r.nodeOf(vfs.TypeSymlink)
	r.say("readlink %d", ino)
	var got []string
	done := r.err(func(s side) error {
		target, err := s.Readlink(r.ctx(), s.ino(ino))
		got = append(got, target)
		return err
	})
	if done && got[0] != got[1] {
		r.differ("targets %.100q", got)
	}
}

func (r *random) doReadDir() {
	dir := r.dir()
	r.say("readdir %d", dir)
	faults := r.dirFaults(dir)
	var listed [][]string // the model's and the tree's
	r.err(func(s side) error {
		entries, err := list(r.ctx(), s, s.ino(dir), 0)
		names := namesOf(entries)
		slices.Sort(names)
		listed = append(listed, names)
		if slices.Contains(faults, sentinel(err)) && !errors.Is(err, vfs.ErrNotDir) {
			err = nil // a removed directory may be empty as well
		}
		return err
	})
	if !slices.Equal(listed[0], listed[1]) {
		r.differ("the tree lists %q, the model %q", listed[1], listed[0])
	}
}

func (r *random) doSetAttr() {
	masks := []vfs.SetMask{
		vfs.SetMode, vfs.SetUID, vfs.SetGID, vfs.SetUID | vfs.SetGID | vfs.SetKillPriv, vfs.SetUID | vfs.SetKillPriv,
		vfs.SetMtime, vfs.SetAtime | vfs.SetMtimeNow, vfs.SetMode | vfs.SetUID | vfs.SetMtime, 0,
	}
	n := r.newNode()
	ino, set := r.node(), vfs.AttrSet{Mask: pick(r, masks), Mode: n.Mode, UID: n.UID, GID: n.GID}
	set.Mtime, set.Atime = vfs.Time(r.rand.Int64()), -vfs.Time(r.rand.Int64())
	r.say("setattr %d %+v", ino, set)
	r.attr(func(s side) (vfs.Attr, error) {
		a, err := s.SetAttr(r.ctx(), s.ino(ino), set)
		if err == nil && set.Mask&vfs.SetMtime != 0 && a.Mtime != set.Mtime {
			r.differ("mtime %d after it was set to %d", a.Mtime, set.Mtime)
		}
		return a, err
	})
}

func (r *random) doTruncate() {
	ino := r.file()
	set := vfs.AttrSet{Mask: vfs.SetSize, Size: pick(r, []uint64{r.length(), r.offset(r.size(ino)), 0})}
	if r.chance(30) {
		set.Mask |= vfs.SetKillPriv
	}
	if r.chance(2) {
		ino, set.Size = r.nodeOf(vfs.TypeRegular), vfs.MaxFileSize+r.rand.Uint64N(2)
	}
	r.say("truncate %d to %d bytes, mask %#x", ino, set.Size, set.Mask)
	r.attr(func(s side) (vfs.Attr, error) {
		return s.SetAttr(r.ctx(), s.ino(ino), set)
	}, append(r.contentFaults(ino), vfs.ErrTooBig)...)
}

func (r *random) doWrite() {
	ino := r.file()
	off, n, kill := r.offset(r.size(ino)), r.length(), r.chance(30)
	p := pattern(int(n), r.rand.Uint64())
	if r.chance(10) {
		clear(p[n/4 : n-n/4]) // zeros, which a store may keep as a hole
	}
	r.say("write %d bytes at %d of %d, kill %t", n, off, ino, kill)
	r.err(func(s side) error { return s.WriteAt(r.ctx(), s.ino(ino), p, off, kill) }, r.contentFaults(ino)...)
}

func (r *random) doRead() {
	ino := r.file()
	off, n := r.offset(r.size(ino)), r.length()
	r.say("read %d bytes at %d of %d", n, off, ino)
	var got [][]byte
	done := r.err(func(s side) error {
		p := dirty(int(n))
		n, err := s.ReadAt(r.ctx(), s.ino(ino), p, off)
		got = append(got, p[:n])
		return err
	}, r.contentFaults(ino)...)
	if done && !bytes.Equal(got[0], got[1]) {
		at := differAt(got[1], got[0])
		if at < 0 {
			r.differ("the tree read %d bytes, the model %d", len(got[1]), len(got[0]))
		}
		r.differ("bytes differ from %d on: %s", off+uint64(at), around(got[1], got[0], at))
	}
}

func (r *random) doAllocate() {
	ino, mode := r.file(), pick(r, allocateModes)
	off, n := r.offset(r.size(ino)), 1+r.length()
	r.say("allocate %d, mode %d, %d bytes at %d", ino, mode, n, off)
	r.err(func(s side) error { return s.Allocate(r.ctx(), s.ino(ino), mode, off, n) }, r.contentFaults(ino)...)
}

func (r *random) doCopy() {
	src, dst := r.file(), r.file()
	off, dstOff, n := r.offset(r.size(src)), r.offset(r.size(dst)), r.length()
	r.say("copy %d bytes at %d of %d to %d of %d", n, off, src, dstOff, dst)
	var copied []uint64
	done := r.err(func(s side) error {
		n, err := s.CopyRange(r.ctx(), s.ino(src), off, s.ino(dst), dstOff, n)
		copied = append(copied, n)
		return err
	}, append(r.contentFaults(src), r.contentFaults(dst)...)...)
	if done && copied[0] != copied[1] {
		r.differ("the tree copied %d bytes, the model %d", copied[1], copied[0])
	}
}

// doSeek checks what the tree's Seek says by the model's bytes: where holes are is up to the tree.
func (r *random) doSeek() {
	ino := r.file()
	size := r.size(ino)
	off := r.offset(size)
	r.say("seek %d from %d", ino, off)
	tree, _ := r.sides()
	for _, whence := range []vfs.Whence{vfs.SeekData, vfs.SeekHole} {
		at, err := tree.Seek(r.ctx(), tree.ino(ino), off, whence)
		if size <= off { // or no file
			_, want := r.model.Seek(r.ctx(), ino, off, whence)
			r.agree(err, want, r.contentFaults(ino)...)
			continue
		}
		if whence == vfs.SeekData && errors.Is(err, vfs.ErrNoData) {
			at, err = size, nil
		}
		r.agree(err, nil)
		if at < off || at > size {
			r.differ("seek %d gives %d", whence, at)
		}
		if whence == vfs.SeekHole {
			off = at // where a hole begins, if it is not the end, there must be a zero
			at = min(at+1, size)
		}
		r.isZero(ino, off, at)
	}
}

// isZero ends the test unless a range of a file is all zeros in the model.
func (r *random) isZero(ino vfs.Ino, off, end uint64) {
	r.Helper()
	for off < end {
		data, err := r.model.Seek(r.ctx(), ino, off, vfs.SeekData)
		if err != nil || data >= end {
			return
		}
		p := make([]byte, min(end-data, 4096))
		if _, err := r.model.ReadAt(r.ctx(), ino, p, data); err != nil {
			r.differ("model: %v", err)
		}
		if i := slices.IndexFunc(p, func(b byte) bool { return b != 0 }); i >= 0 {
			r.differ("a hole at %d, where the model has data", data+uint64(i))
		}
		off = data + uint64(len(p))
	}
}

var randomXattrs = []string{"user.a", "user.b", "user.\xff", "security.c"}

func (r *random) doSetXattr() {
	ino, name, value := r.node(), pick(r, randomXattrs), pattern(int(min(r.length(), vfs.MaxXattrSize)), r.rand.Uint64())
	flags := pick(r, []vfs.XattrFlags{0, 0, vfs.XattrCreate, vfs.XattrReplace})
	r.say("setxattr %d %q, %d bytes, flags %d", ino, name, len(value), flags)
	r.err(func(s side) error { return s.SetXattr(r.ctx(), s.ino(ino), name, value, flags) })
}

func (r *random) doGetXattr() {
	ino, name := r.node(), pick(r, randomXattrs)
	r.say("getxattr %d %q", ino, name)
	var got []string
	done := r.err(func(s side) error {
		value, err := s.GetXattr(r.ctx(), s.ino(ino), name)
		got = append(got, string(value))
		return err
	})
	if done && got[0] != got[1] {
		r.differ("values %.100q", got)
	}
}

func (r *random) doRemoveXattr() {
	ino, name := r.node(), pick(r, randomXattrs)
	r.say("removexattr %d %q", ino, name)
	r.err(func(s side) error { return s.RemoveXattr(r.ctx(), s.ino(ino), name) })
}

func (r *random) doHold() {
	ino := r.node()
	r.say("hold %d", ino)
	if _, err := r.model.Stat(r.ctx(), ino); err == nil {
		r.held[ino]++
	}
	r.tree.Hold(r.twins[ino])
	r.model.Hold(ino)
}

func (r *random) doRelease() {
	var held []vfs.Ino
	for _, ino := range r.known {
		if r.held[ino] > 0 {
			held = append(held, ino)
		}
	}
	if len(held) == 0 {
		return
	}
	ino := pick(r, held)
	n := 1 + r.rand.Uint64N(r.held[ino])
	r.say("release %d, %d times", ino, n)
	r.tree.Release(r.twins[ino], n)
	r.model.Release(ino, n)
	if r.held[ino] -= n; r.held[ino] == 0 {
		delete(r.held, ino)
	}
	r.stat(ino)
}

func (r *random) doFsync() {
	ino := r.node()
	r.say("fsync %d", ino)
	r.err(func(s side) error { return s.Fsync(r.ctx(), s.ino(ino)) })
}

func (r *random) doCommit() {
	r.say("commit")
	r.err(func(s side) error {
		_, err := s.Commit(r.ctx())
		return err
	})
}
