package wiretest

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// draft is a mirror's copy of a workspace: what it has from the authority, and what it makes of it.
type draft struct {
	k        *kit
	n        int // which peer
	base     state
	own      state
	position vfs.Position
	free     vfs.InoRange // leased and not used yet
}

// draft begins with what the authority has.
func (k *kit) draft(peer int) *draft {
	base, position := k.snapshot()
	return &draft{k: k, n: peer, base: base, own: maps.Clone(base), position: position}
}

// ino returns a new inode number.
func (d *draft) ino() vfs.Ino {
	if d.free.First == 0 || d.free.First > d.free.Last {
		authority, id := d.k.Peer(d.n)
		var err error
		d.free, err = authority.LeaseInos(d.k.ctx, id, 64)
		if d.k.must(err, "lease"); d.free.First <= vfs.RootIno || !d.free.Valid() || d.free.Last-d.free.First >= 64 {
			d.k.fail("lease of 64: %v", d.free)
		}
	}
	d.free.First++
	return d.free.First - 1
}

func inodeKey(ino vfs.Ino) vfs.Key { return vfs.Key{Kind: vfs.KeyInode, Ino: ino} }

func direntKey(dir vfs.Ino, name string) vfs.Key {
	return vfs.Key{Kind: vfs.KeyDirent, Ino: dir, Name: name}
}

func xattrKey(ino vfs.Ino, name string) vfs.Key {
	return vfs.Key{Kind: vfs.KeyXattr, Ino: ino, Name: name}
}

func (d *draft) put(key vfs.Key, value []byte) { d.own[key] = vfs.Record{Key: key, Value: value} }

func (d *draft) edit(ino vfs.Ino, f func(*vfs.InodeRecord)) {
	r, err := vfs.DecodeInode(d.own[inodeKey(ino)].Value)
	d.k.must(err, fmt.Sprintf("decode inode %d", ino))
	f(&r)
	d.put(inodeKey(ino), r.Append(nil))
}

func (d *draft) name(dir vfs.Ino, name string, ino vfs.Ino, t vfs.Type) {
	d.put(direntKey(dir, name), (&vfs.DirentRecord{Ino: ino, Type: t}).Append(nil))
	d.edit(dir, func(r *vfs.InodeRecord) { r.Mtime++ })
}

// file makes a file that holds data.
func (d *draft) file(dir vfs.Ino, name string, body vfs.Body, size uint64) vfs.Ino {
	ino := d.ino()
	r := vfs.InodeRecord{Type: vfs.TypeRegular, Mode: 0o644, Nlink: 1, Size: size, Body: body}
	d.put(inodeKey(ino), r.Append(nil))
	d.name(dir, name, ino, vfs.TypeRegular)
	return ino
}

func (d *draft) text(dir vfs.Ino, name, text string) vfs.Ino {
	body := vfs.Body{}
	if text != "" {
		body = vfs.Body{Kind: vfs.BodyInline, Data: []byte(text)}
	}
	return d.file(dir, name, body, uint64(len(text)))
}

func (d *draft) mkdir(dir vfs.Ino, name string) vfs.Ino {
	ino := d.ino()
	r := vfs.InodeRecord{Type: vfs.TypeDir, Mode: 0o755, Nlink: 2, Parent: dir}
	d.put(inodeKey(ino), r.Append(nil))
	d.name(dir, name, ino, vfs.TypeDir)
	d.edit(dir, func(r *vfs.InodeRecord) { r.Nlink++ })
	return ino
}

// move gives a directory another place.
func (d *draft) move(ino, from vfs.Ino, name string, to vfs.Ino, newName string) {
	delete(d.own, direntKey(from, name))
	d.edit(from, func(r *vfs.InodeRecord) { r.Nlink-- })
	d.edit(to, func(r *vfs.InodeRecord) { r.Nlink++ })
	d.edit(ino, func(r *vfs.InodeRecord) { r.Parent = to })
	d.name(to, newName, ino, vfs.TypeDir)
}

// remove takes away the only name of a file, and the file.
func (d *draft) remove(dir vfs.Ino, name string) {
	dirent, err := vfs.DecodeDirent(d.own[direntKey(dir, name)].Value)
	d.k.must(err, "decode "+name)
	maps.DeleteFunc(d.own, func(key vfs.Key, _ vfs.Record) bool {
		return key == direntKey(dir, name) || key.Kind != vfs.KeyDirent && key.Ino == dirent.Ino
	})
	d.edit(dir, func(r *vfs.InodeRecord) { r.Mtime++ })
}

func (d *draft) xattr(ino vfs.Ino, name string, value []byte) {
	if _, ok := d.own[xattrKey(ino, name)]; !ok {
		d.edit(ino, func(r *vfs.InodeRecord) { r.Xattrs++ })
	}
	d.put(xattrKey(ino, name), value)
}

// push returns what turns the base into the draft, under a new id.
func (d *draft) push() vfs.Push {
	var p vfs.Push
	rand.Read(p.ID[:])
	keys := maps.Clone(d.base)
	maps.Copy(keys, d.own)
	for _, key := range slices.SortedFunc(maps.Keys(keys), vfs.Key.Compare) {
		old, now := d.base[key], d.own[key]
		old.Key = key
		if (old.Value == nil) != (now.Value == nil) || !bytes.Equal(old.Value, now.Value) {
			record := vfs.Record{Key: key, Value: bytes.Clone(now.Value)}
			p.Records = append(p.Records, vfs.PushRecord{Record: record, Base: old.Base()})
		}
	}
	return p
}

// send gives a push to the authority as it is.
func (d *draft) send(p vfs.Push) (vfs.Outcome, error) {
	authority, id := d.k.Peer(d.n)
	return authority.Push(d.k.ctx, id, p)
}

// commit pushes the draft, which must be applied, and makes it the new base.
func (d *draft) commit() vfs.Outcome {
	p := d.push()
	o, err := d.send(p)
	switch d.k.must(err, "push"); {
	case !o.Applied():
		d.k.fail("push: stale %v, missing %v", o.Stale, o.Missing)
	case len(p.Records) > 0 && o.Position.Rev <= o.Prev:
		d.k.fail("push: revision %d after %d", o.Position.Rev, o.Prev)
	case o.Position.Digest != d.own.digest() && o.Prev == d.position.Rev:
		d.k.fail("push: the digest is %v, of what was pushed %v", o.Position.Digest, d.own.digest())
	}
	d.base, d.position = maps.Clone(d.own), o.Position
	return o
}

// refused sends a push, which must fail with want, and checks that nothing has happened.
func (d *draft) refused(p vfs.Push, want error, what string) {
	before, err := d.k.authority.Position(d.k.ctx)
	d.k.must(err, "position")
	_, err = d.send(p)
	d.k.want(err, want, "push of "+what)
	d.unchanged(before, what)
}

func (d *draft) unchanged(before vfs.Position, what string) {
	after, err := d.k.authority.Position(d.k.ctx)
	if d.k.must(err, "position"); !sameState(after, before) {
		d.k.fail("%s: the position was %v and is %v", what, before, after)
	}
}

// chunkOf returns plain bytes as a chunk.
func chunkOf(plain []byte) vfs.Chunk {
	codec, stored := chunk.Encode(nil, plain)
	return vfs.Chunk{ID: chunk.Sum(plain), Codec: codec, PlainLen: len(plain), Stored: bytes.Clone(stored)}
}

// bodyOf returns a body of extents that holds chunks one after the other.
func bodyOf(chunks ...vfs.Chunk) (body vfs.Body, size uint64) {
	var entries []chunk.Entry
	for _, c := range chunks {
		entries = append(entries, chunk.Entry{ID: c.ID, Len: uint64(c.PlainLen)})
		size += uint64(c.PlainLen)
	}
	return vfs.Body{Kind: vfs.BodyExtents, Data: chunk.AppendEntries(nil, entries)}, size
}
