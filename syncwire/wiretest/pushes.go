package wiretest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// pushChecks are what holds for pushes.
var pushChecks = []Check{
	{"a push is one revision", checkPushIsOneRevision},
	{"a push again has the same answer and no effect", checkPushAgain},
	{"an id is not used for two pushes", checkPushReused},
	{"ids are a peer's own", checkPushIDsOfPeers},
	{"a stale push is not applied and learns why", checkPushStale},
	{"what is there already is never stale", checkPushEqual},
	{"a push without anything new makes no revision", checkPushNothing},
	{"what is no tree is not applied", checkPushInvalid},
	{"numbers that are not the peer's are not used", checkPushNumbers},
	{"a removed inode may come back", checkPushRevival},
	{"a loop by two peers is stale", checkPushLoop},
	{"renaming a directory is a few records", checkPushRename},
	{"hard links stay", checkPushLinks},
	{"an empty attribute is not a tombstone", checkPushAttributes},
	{"pushes of many peers lose nothing", checkPushRace},
	{"a push does not keep its slices", checkPushSlices},
}

func checkPushIsOneRevision(k *kit) {
	d := k.draft(0)
	dir := d.mkdir(vfs.RootIno, "dir")
	d.text(dir, "a", "one")
	d.text(dir, "b", "two")
	before := d.position
	o := d.commit()
	if o.Prev != before.Rev || o.Position.Epoch != before.Epoch {
		k.fail("pushed at %v, prev %d, now %v", before.Cursor, o.Prev, o.Position.Cursor)
	}
	s, position := k.snapshot()
	if !s.same(d.own) || !sameState(position, o.Position) {
		k.fail("at %v there is not what was pushed at %v", position, o.Position)
	}
	for key, r := range s {
		if _, changed := d.base[key]; changed && r.Rev != o.Position.Rev {
			k.fail("%v is of revision %d, pushed in %d", key, r.Rev, o.Position.Rev)
		}
	}
}

func checkPushAgain(k *kit) {
	d := k.draft(0)
	d.text(vfs.RootIno, "a", "one")
	p := d.push()
	first, err := d.send(p)
	k.must(err, "push")
	d.base, d.position = maps.Clone(d.own), first.Position
	for i := range vfs.PushMemory - 1 {
		d.edit(vfs.RootIno, func(r *vfs.InodeRecord) { r.Mtime = vfs.Time(1000 + i) })
		d.commit()
	}
	again, err := d.send(p)
	if k.must(err, "push again"); !sameState(again.Position, first.Position) || again.Prev != first.Prev ||
		!again.Applied() {
		k.fail("the answer was %v, and is %v", first, again)
	}
	d.unchanged(d.position, "a push again")
}

func checkPushReused(k *kit) {
	d := k.draft(0)
	d.text(vfs.RootIno, "a", "one")
	p := d.push()
	_, err := d.send(p)
	k.must(err, "push")
	for name, change := range map[string]func(*vfs.Push){
		"another value": func(p *vfs.Push) {
			i := slices.IndexFunc(p.Records, func(r vfs.PushRecord) bool {
				return r.Kind == vfs.KeyInode && r.Ino != vfs.RootIno
			})
			v := p.Records[i].Value
			v[len(v)-1]++
		},
		"another base":  func(p *vfs.Push) { p.Records[0].Base[3]++ },
		"a record less": func(p *vfs.Push) { p.Records = p.Records[1:] },
		"a tombstone":   func(p *vfs.Push) { p.Records[0].Value = nil },
	} {
		other := vfs.Push{ID: p.ID, Records: slices.Clone(p.Records)}
		for i := range other.Records {
			other.Records[i].Value = bytes.Clone(other.Records[i].Value)
		}
		change(&other)
		d.refused(other, vfs.ErrPushReused, "an id with "+name)
	}
}

func checkPushIDsOfPeers(k *kit) {
	d, e := k.draft(0), k.draft(1)
	d.edit(vfs.RootIno, func(r *vfs.InodeRecord) { r.Mtime = 1 })
	p := d.push()
	_, err := d.send(p)
	k.must(err, "push")
	e.edit(vfs.RootIno, func(r *vfs.InodeRecord) { r.Mtime = 2 })
	q := e.push()
	q.ID = p.ID
	o, err := e.send(q)
	if k.must(err, "push of another peer under the same id"); o.Applied() {
		k.fail("push of another peer under the same id: %v", o)
	}
}

func checkPushStale(k *kit) {
	d := k.draft(0)
	ino := d.text(vfs.RootIno, "a", "one")
	d.xattr(ino, "user.x", []byte("1"))
	d.commit()
	mine := k.draft(1)
	d.remove(vfs.RootIno, "a")
	d.commit()
	d.text(vfs.RootIno, "b", "two")
	theirs := d.commit()
	mine.edit(ino, func(r *vfs.InodeRecord) { r.Mode = 0o600 })
	mine.text(vfs.RootIno, "c", "three")
	p := mine.push()
	o, err := mine.send(p)
	k.must(err, "push")
	mine.unchanged(theirs.Position, "a stale push")
	if !sameState(o.Position, theirs.Position) {
		k.fail("stale at %v, the workspace is at %v", o.Position, theirs.Position)
	}
	var keys []vfs.Key
	for _, r := range o.Stale {
		keys = append(keys, r.Key)
		if want := d.own[r.Key]; !bytes.Equal(r.Value, want.Value) || (r.Value == nil) != (want.Value == nil) {
			k.fail("stale %v: %x, want %x", r.Key, r.Value, want.Value)
		}
		if r.Value != nil && r.Rev != theirs.Position.Rev {
			k.fail("stale %v is of revision %d, want %d", r.Key, r.Rev, theirs.Position.Rev)
		}
	}
	slices.SortFunc(keys, vfs.Key.Compare)
	if want := []vfs.Key{inodeKey(vfs.RootIno), inodeKey(ino)}; !slices.Equal(keys, want) {
		k.fail("stale %v, want %v", keys, want)
	}
	mine.base, mine.position = k.snapshot()
	mine.own = maps.Clone(mine.base)
	mine.text(vfs.RootIno, "c", "three")
	q := mine.push()
	q.ID = p.ID // a push that was not applied has not used its id up
	o, err = mine.send(q)
	if k.must(err, "push reconciled"); !o.Applied() {
		k.fail("push reconciled: %v", o)
	}
}

func checkPushEqual(k *kit) {
	d, e := k.draft(0), k.draft(1)
	d.edit(vfs.RootIno, func(r *vfs.InodeRecord) { r.Mtime, r.Mode = 7, 0o700 })
	e.edit(vfs.RootIno, func(r *vfs.InodeRecord) { r.Mtime, r.Mode = 7, 0o700 })
	d.commit()
	o, err := e.send(e.push())
	if k.must(err, "push"); !o.Applied() || !sameState(o.Position, d.position) {
		k.fail("push of what is there: %v", o)
	}
}

func checkPushNothing(k *kit) {
	d := k.draft(0)
	for i, p := range []vfs.Push{{ID: vfs.PushID{1}}, {ID: vfs.PushID{2}, Records: []vfs.PushRecord{
		{Record: d.base[inodeKey(vfs.RootIno)]}, {Record: vfs.Record{Key: direntKey(vfs.RootIno, "nothing")}},
	}}} {
		for j := range p.Records {
			p.Records[j].Rev = 0
		}
		o, err := d.send(p)
		if k.must(err, "push"); !o.Applied() || o.Position.Rev != o.Prev || !sameState(o.Position, d.position) {
			k.fail("push %d of nothing new: %v", i, o)
		}
	}
	d.unchanged(d.position, "a push of nothing new")
}

func checkPushInvalid(k *kit) {
	d := k.draft(0)
	dir := d.mkdir(vfs.RootIno, "dir")
	ino := d.text(dir, "a", "one")
	d.commit()
	for _, tt := range []struct {
		name string
		edit func(d *draft)
		want error
	}{
		{"a link count", func(d *draft) { d.edit(ino, func(r *vfs.InodeRecord) { r.Nlink = 2 }) }, vfs.ErrInvalid},
		{"a directory's link count", func(d *draft) { d.edit(dir, func(r *vfs.InodeRecord) { r.Nlink = 3 }) }, vfs.ErrInvalid},
		{"a file without a name", func(d *draft) { d.text(dir, "b", ""); delete(d.own, direntKey(dir, "b")) }, vfs.ErrInvalid},
		{"a name that leads nowhere", func(d *draft) { d.name(dir, "b", d.ino(), vfs.TypeRegular) }, vfs.ErrInvalid},
		{"a name of the wrong type", func(d *draft) { d.name(dir, "a", ino, vfs.TypeFIFO) }, vfs.ErrInvalid},
		{"a directory of two names", func(d *draft) { d.name(vfs.RootIno, "dir2", dir, vfs.TypeDir) }, vfs.ErrInvalid},
		{"a directory in itself", func(d *draft) { d.move(dir, vfs.RootIno, "dir", dir, "dir") }, vfs.ErrInvalid},
		{"a directory removed over an entry", func(d *draft) {
			delete(d.own, direntKey(vfs.RootIno, "dir"))
			delete(d.own, inodeKey(dir))
			d.edit(vfs.RootIno, func(r *vfs.InodeRecord) { r.Nlink-- })
		}, vfs.ErrInvalid},
		{"a file that becomes a FIFO", func(d *draft) {
			d.edit(ino, func(r *vfs.InodeRecord) { r.Type, r.Size, r.Body = vfs.TypeFIFO, 0, vfs.Body{} })
			d.name(dir, "a", ino, vfs.TypeFIFO)
		}, vfs.ErrInvalid},
		{"a count of attributes", func(d *draft) { d.edit(ino, func(r *vfs.InodeRecord) { r.Xattrs = 1 }) }, vfs.ErrInvalid},
		{"an attribute that is not counted", func(d *draft) { d.put(xattrKey(ino, "user.x"), []byte{}) }, vfs.ErrInvalid},
		{"a root that is gone", func(d *draft) { clear(d.own) }, vfs.ErrInvalid},
		{"a record that does not decode", func(d *draft) { d.put(inodeKey(ino), []byte("record")) }, vfs.ErrCorrupt},
		{"a record with bytes behind it", func(d *draft) {
			key := direntKey(dir, "a")
			d.put(key, append(bytes.Clone(d.own[key].Value), 0))
		}, vfs.ErrCorrupt},
		{"a name with a slash", func(d *draft) { d.text(dir, "a/b", "") }, vfs.ErrInvalid},
		{"a name that is too long", func(d *draft) { d.text(dir, strings.Repeat("n", 256), "") }, vfs.ErrNameTooLong},
	} {
		e := &draft{k: k, base: d.base, own: maps.Clone(d.own), position: d.position}
		tt.edit(e)
		d.refused(e.push(), tt.want, tt.name)
	}
}

func checkPushNumbers(k *kit) {
	other := k.draft(1)
	foreign := other.ino()
	for name, ino := range map[string]vfs.Ino{"another peer's number": foreign, "a number that nobody has": 1 << 60} {
		d := k.draft(0)
		d.free = vfs.InoRange{First: ino, Last: ino}
		d.text(vfs.RootIno, "a", "one")
		d.refused(d.push(), vfs.ErrNotPermitted, name)
	}
	d := k.draft(0)
	d.ino()
	d.free.First = d.free.Last // numbers of a lease may be used in any order
	d.text(vfs.RootIno, "a", "one")
	d.commit()
}

// An edit against a deletion brings the file back, under its number, by a peer that was not leased it.
func checkPushRevival(k *kit) {
	d := k.draft(0)
	d.text(vfs.RootIno, "a", "one")
	d.commit()
	was := maps.Clone(d.own)
	d.remove(vfs.RootIno, "a")
	d.commit()
	e := k.draft(1)
	e.own = was
	e.edit(vfs.RootIno, func(r *vfs.InodeRecord) { r.Mtime = 99 })
	e.commit()
}

func checkPushLoop(k *kit) {
	d := k.draft(0)
	a, b := d.mkdir(vfs.RootIno, "a"), d.mkdir(vfs.RootIno, "b")
	p, q := d.mkdir(a, "p"), d.mkdir(b, "q")
	x, y := d.mkdir(p, "x"), d.mkdir(q, "y")
	d.commit()
	e := k.draft(1)
	d.move(p, a, "p", y, "p")
	theirs := d.commit()
	e.move(q, b, "q", x, "q")
	o, err := e.send(e.push())
	k.must(err, "push")
	keys := slices.SortedFunc(keysOf(o.Stale), vfs.Key.Compare)
	want := []vfs.Key{inodeKey(p), inodeKey(y)}
	slices.SortFunc(want, vfs.Key.Compare)
	if !slices.Equal(keys, want) {
		k.fail("stale %v, want %v", keys, want)
	}
	e.unchanged(theirs.Position, "a push that makes a loop")
}

func checkPushRename(k *kit) {
	d := k.draft(0)
	dir := d.mkdir(vfs.RootIno, "dir")
	other := d.mkdir(vfs.RootIno, "other")
	for i := range 50 {
		d.text(dir, fmt.Sprint("file", i), "text")
	}
	d.commit()
	since := d.position.Cursor
	d.move(dir, vfs.RootIno, "dir", other, "moved")
	if p := d.push(); len(p.Records) > 5 {
		k.fail("renaming a directory takes %d records", len(p.Records))
	}
	d.commit()
	if records, _ := k.read(vfs.Query{Since: since, Range: vfs.AllInos}); len(records) > 5 {
		k.fail("renaming a directory is read as %d records", len(records))
	}
}

func checkPushLinks(k *kit) {
	d := k.draft(0)
	ino := d.text(vfs.RootIno, "a", "one")
	d.edit(ino, func(r *vfs.InodeRecord) { r.Nlink = 2 })
	d.name(vfs.RootIno, "b", ino, vfs.TypeRegular)
	d.commit()
	delete(d.own, direntKey(vfs.RootIno, "a"))
	d.edit(ino, func(r *vfs.InodeRecord) { r.Nlink = 1 })
	d.commit()
	keys := []vfs.Key{direntKey(vfs.RootIno, "b"), direntKey(vfs.RootIno, "a"), inodeKey(ino)}
	records, _, err := k.authority.Get(k.ctx, keys)
	k.must(err, "get")
	if records[0].Value == nil || records[1].Value != nil || records[2].Value == nil {
		k.fail("after one of two names went: %v", records)
	}
}

func checkPushAttributes(k *kit) {
	d := k.draft(0)
	ino := d.text(vfs.RootIno, "a", "one")
	d.xattr(ino, "user.empty", []byte{})
	d.xattr(ino, "user.full", []byte("full"))
	d.commit()
	since := d.position.Cursor
	d.put(xattrKey(ino, "user.full"), []byte{})
	delete(d.own, xattrKey(ino, "user.empty"))
	d.edit(ino, func(r *vfs.InodeRecord) { r.Xattrs = 1 })
	d.commit()
	records, _ := k.read(vfs.Query{Since: since, Range: vfs.InoRange{First: ino, Last: ino}})
	found := make(map[string]bool)
	for _, r := range records {
		if r.Kind == vfs.KeyXattr {
			found[r.Name] = r.Value != nil
		}
	}
	if len(found) != 2 || !found["user.full"] || found["user.empty"] {
		k.fail("one attribute became empty, one went: %v", found)
	}
}

// checkPushRace has peers that each add files to one directory, with the same records in the way of all.
func checkPushRace(k *kit) {
	const peers, files = 4, 8
	var group sync.WaitGroup
	errs := make([]error, peers)
	for n := range peers {
		group.Go(func() {
			defer func() {
				if f, ok := recover().(failed); ok {
					errs[n] = f.err
				}
			}()
			for i := range files {
				k.insist(n, fmt.Sprintf("%d-%d", n, i))
			}
		})
	}
	group.Wait()
	k.must(errors.Join(errs...), "race")
	names := 0
	s, _ := k.snapshot()
	for key := range s {
		if key.Kind == vfs.KeyDirent {
			names++
		}
	}
	if names != peers*files {
		k.fail("%d peers made %d files each, and there are %d", peers, files, names)
	}
}

// insist pushes a file until it is not stale.
func (k *kit) insist(peer int, name string) {
	for {
		d := k.draft(peer)
		d.text(vfs.RootIno, name, name)
		o, err := d.send(d.push())
		if k.must(err, "push"); o.Applied() {
			return
		}
	}
}

func checkPushSlices(k *kit) {
	d := k.draft(0)
	d.text(vfs.RootIno, "a", "one")
	p := d.push()
	_, err := d.send(p)
	k.must(err, "push")
	for _, r := range p.Records {
		for i := range r.Value {
			r.Value[i] = 0xff
		}
	}
	if s, _ := k.snapshot(); !s.same(d.own) {
		k.fail("what was pushed changes with the slices that the caller has back")
	}
}
