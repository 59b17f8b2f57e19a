package syncwire

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire/wiretest"
)

// What common changes cost on the wire, both ways, with the answer.
func TestBytes(t *testing.T) {
	inLab(t, ServerConfig{}, func(t *testing.T, n *lab, m *wiretest.Memory, _ *Server) {
		c := client(t, n, 0, "secret")
		w := newWriter(t, c, 0)
		w.push(w.text("file", 10_000))
		cost := func(what string, limit int64, p vfs.Push) {
			before := n.sent.Load()
			w.push(p)
			bytes := n.sent.Load() - before
			if bytes > limit {
				t.Errorf("%s: %d bytes, at most %d", what, bytes, limit)
			}
			t.Logf("%s: %d bytes", what, bytes)
		}
		dir := w.directory(t, "big", "file", 10_000)
		w.push(dir)
		cost("renaming a directory of 10,000 files", 1<<10, w.rename("big", "moved"))
		cost("changing the mode of 1,000 files", 100<<10, w.chmod(1000))
	})
}

// all returns the workspace as it is.
func (w *writer) all() map[vfs.Key]vfs.Record {
	all := make(map[vfs.Key]vfs.Record)
	_, err := w.a.Read(context.Background(), vfs.Query{Range: vfs.AllInos}, func(r vfs.Record) error {
		r.Value = bytes.Clone(r.Value)
		all[r.Key] = r
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// replace adds a change of a key to a push.
func replace(p *vfs.Push, all map[vfs.Key]vfs.Record, key vfs.Key, value []byte) {
	old := all[key]
	old.Key = key
	p.Records = append(p.Records, vfs.PushRecord{Record: vfs.Record{Key: key, Value: value}, Base: old.Base()})
}

func inodeOf(ino vfs.Ino) vfs.Key { return vfs.Key{Kind: vfs.KeyInode, Ino: ino} }

func nameOf(dir vfs.Ino, name string) vfs.Key {
	return vfs.Key{Kind: vfs.KeyDirent, Ino: dir, Name: name}
}

// edit adds a change of an inode to a push.
func (w *writer) edit(p *vfs.Push, all map[vfs.Key]vfs.Record, ino vfs.Ino, f func(*vfs.InodeRecord)) {
	rec, err := vfs.DecodeInode(all[inodeOf(ino)].Value)
	if err != nil {
		w.t.Fatal(err)
	}
	f(&rec)
	replace(p, all, inodeOf(ino), rec.Append(nil))
}

// directory returns a push that makes a directory and moves files into it.
func (w *writer) directory(t *testing.T, name, prefix string, n int) vfs.Push {
	all, p := w.all(), vfs.Push{ID: vfs.PushID{byte(n)}}
	ino := w.free.First
	w.free.First++
	rec := vfs.InodeRecord{Type: vfs.TypeDir, Mode: 0o755, Nlink: 2, Parent: vfs.RootIno}
	replace(&p, all, inodeOf(ino), rec.Append(nil))
	replace(&p, all, nameOf(vfs.RootIno, name), (&vfs.DirentRecord{Ino: ino, Type: vfs.TypeDir}).Append(nil))
	w.edit(&p, all, vfs.RootIno, func(r *vfs.InodeRecord) { r.Nlink++ })
	for key, r := range all {
		if key.Kind == vfs.KeyDirent {
			replace(&p, all, key, nil)
			replace(&p, all, nameOf(ino, key.Name), r.Value)
		}
	}
	return p
}

// rename returns a push that gives a directory of the root another name.
func (w *writer) rename(name, newName string) vfs.Push {
	all, p := w.all(), vfs.Push{ID: vfs.PushID{1, 1}}
	replace(&p, all, nameOf(vfs.RootIno, newName), all[nameOf(vfs.RootIno, name)].Value)
	replace(&p, all, nameOf(vfs.RootIno, name), nil)
	w.edit(&p, all, vfs.RootIno, func(r *vfs.InodeRecord) { r.Mtime, r.Ctime = 1<<60, 1<<60 })
	return p
}

// chmod returns a push that changes the mode of n files, to another and back.
func (w *writer) chmod(n int) vfs.Push {
	all, p := w.all(), vfs.Push{ID: vfs.PushID{1, 2}}
	for _, key := range slices.SortedFunc(maps.Keys(all), vfs.Key.Compare) {
		rec, err := vfs.DecodeInode(all[key].Value)
		if key.Kind == vfs.KeyInode && err == nil && rec.Type == vfs.TypeRegular && len(p.Records) < n {
			w.edit(&p, all, key.Ino, func(r *vfs.InodeRecord) { r.Mode, r.Ctime = r.Mode^0o044, 1<<60 })
		}
	}
	return p
}
