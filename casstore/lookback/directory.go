package lookback

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"io"
	"slices"
	"strconv"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// directory is .carrel, and leads to what is in it.
type directory struct {
	base  vfs.Tree // of whose root it has the owner
	past  Past
	made  vfs.Time // the time that it shows
	shelf *shelf
}

// textOf returns what a file rev says; ok is false for anything else.
func textOf(ino vfs.Ino) (text string, ok bool) {
	p, rev := split(ino)
	if p != placeRev {
		return "", false
	}
	return strconv.FormatUint(uint64(rev), 10) + "\n", true
}

// in runs a call on the snapshot that an inode is in, with the number that it has there. For what is in none it returns
// otherwise.
func (d *directory) in(ctx context.Context, ino vfs.Ino, otherwise error, call func(vfs.Tree, vfs.Ino) error) error {
	p, number := split(ino)
	if p < placeFirst {
		return otherwise
	}
	return d.shelf.use(ctx, p, func(s vfs.Tree) error { return call(s, number) })
}

func (d *directory) stat(ctx context.Context, ino vfs.Ino) (a vfs.Attr, err error) {
	if p, _ := split(ino); p < placeFirst {
		return d.own(ctx, ino)
	}
	p, number := split(ino)
	err = d.shelf.use(ctx, p, func(s vfs.Tree) error {
		if a, err = s.Stat(ctx, number); err == nil {
			a, err = renumber(p, a)
		}
		return err
	})
	return a, err
}

// own returns the attributes of what is in no snapshot.
func (d *directory) own(ctx context.Context, ino vfs.Ino) (vfs.Attr, error) {
	root, err := d.base.Stat(ctx, vfs.RootIno)
	if err != nil {
		return vfs.Attr{}, err
	}
	a := vfs.Attr{Ino: ino, Type: vfs.TypeDir, Mode: 0o555, UID: root.UID, GID: root.GID}
	a.Atime, a.Mtime, a.Ctime = d.made, d.made, d.made
	text, isRev := textOf(ino)
	switch {
	case isRev:
		a.Type, a.Mode, a.Nlink, a.Size, a.Blocks = vfs.TypeRegular, 0o444, 1, uint64(len(text)), 1
	case ino == selfIno:
		a.Nlink, a.Parent = 3, vfs.RootIno
	case ino == snapshotsIno:
		a.Nlink, a.Parent = 1, selfIno // 1 says of a directory that nobody has counted
		a.Mtime = d.past.Changed()     // by which a kernel tells whether a listing is still right
		a.Ctime = a.Mtime
	default:
		return vfs.Attr{}, vfs.ErrStale
	}
	return a, nil
}

func (d *directory) lookup(ctx context.Context, dir vfs.Ino, name string) (a vfs.Attr, err error) {
	if err := vfs.CheckName(name); err != nil {
		return vfs.Attr{}, err
	}
	p, number := split(dir)
	switch {
	case dir == selfIno && name == "snapshots":
		return d.own(ctx, snapshotsIno)
	case dir == selfIno && name == "rev":
		return d.lookupRev(ctx)
	case dir == selfIno:
		return vfs.Attr{}, vfs.ErrNotExist
	case dir == snapshotsIno:
		return d.lookupSnapshot(ctx, name)
	case p < placeFirst:
		return vfs.Attr{}, vfs.ErrNotDir
	}
	err = d.shelf.use(ctx, p, func(s vfs.Tree) error {
		if a, err = s.Lookup(ctx, number, name); err == nil {
			a, err = renumber(p, a)
		}
		return err
	})
	return a, err
}

func (d *directory) lookupRev(ctx context.Context) (vfs.Attr, error) {
	rev, err := d.past.Rev(ctx)
	if err != nil {
		return vfs.Attr{}, err
	}
	ino, err := join(placeRev, vfs.Ino(rev))
	if err != nil {
		return vfs.Attr{}, err
	}
	return d.own(ctx, ino)
}

func (d *directory) lookupSnapshot(ctx context.Context, name string) (vfs.Attr, error) {
	sn, err := d.past.Snapshot(ctx, name)
	if errors.Is(err, vfs.ErrNoRevision) {
		err = vfs.ErrNotExist
	}
	if err != nil {
		return vfs.Attr{}, err
	}
	p, err := d.shelf.place(sn)
	if err != nil {
		return vfs.Attr{}, err
	}
	root, err := join(p, vfs.RootIno)
	if err != nil {
		return vfs.Attr{}, err
	}
	return d.stat(ctx, root)
}

func (d *directory) list(ctx context.Context, dir vfs.Ino, after vfs.Offset, yield func(vfs.Dirent) bool) error {
	p, number := split(dir)
	switch {
	case dir == selfIno:
		rev, _ := join(placeRev, 0) // whichever it is when it is looked up
		listed([]vfs.Dirent{
			{Name: "snapshots", Ino: snapshotsIno, Type: vfs.TypeDir, Offset: vfs.FirstOffset},
			{Name: "rev", Ino: rev, Type: vfs.TypeRegular, Offset: vfs.FirstOffset + 1},
		}, after, yield)
		return nil
	case dir == snapshotsIno:
		return d.listSnapshots(ctx, after, yield)
	case p < placeFirst:
		return vfs.ErrNotDir
	}
	var bad error
	err := d.shelf.use(ctx, p, func(s vfs.Tree) error {
		return s.ReadDir(ctx, number, after, func(e vfs.Dirent) bool {
			e.Ino, bad = join(p, e.Ino)
			return bad == nil && yield(e)
		})
	})
	return cmp.Or(err, bad)
}

// listSnapshots lists them by the hashes of their names, which are their offsets.
func (d *directory) listSnapshots(ctx context.Context, after vfs.Offset, yield func(vfs.Dirent) bool) error {
	snapshots, err := d.past.Snapshots(ctx)
	if err != nil {
		return err
	}
	entries := make([]vfs.Dirent, 0, len(snapshots))
	for _, sn := range snapshots {
		p, err := d.shelf.place(sn)
		if err != nil {
			return err
		}
		root, err := join(p, vfs.RootIno)
		if err != nil {
			return err
		}
		entries = append(entries, vfs.Dirent{Name: sn.Name, Ino: root, Type: vfs.TypeDir, Offset: offsetOf(sn.Name)})
	}
	slices.SortFunc(entries, func(a, b vfs.Dirent) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Name, b.Name))
	})
	for i := range entries[:max(len(entries)-1, 0)] {
		entries[i+1].Offset = max(entries[i+1].Offset, entries[i].Offset+1)
	}
	listed(entries, after, yield)
	return nil
}

// offsetOf returns a hash of a name that is an offset. It leaves room for others that have the same.
func offsetOf(name string) vfs.Offset {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name) // it cannot fail
	return vfs.Offset(h.Sum64()>>2) + vfs.FirstOffset
}

// listed yields the entries after an offset.
func listed(entries []vfs.Dirent, after vfs.Offset, yield func(vfs.Dirent) bool) {
	for _, e := range entries {
		if e.Offset > after && !yield(e) {
			return
		}
	}
}
