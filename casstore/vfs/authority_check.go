package vfs

import (
	"bytes"
	"errors"
	"fmt"
)

// PushView is the state that a push is to be applied to, as CheckPush reads it. It must not change meanwhile. Values that
// it returns are not kept.
type PushView interface {
	// Value returns the value under a key, nil when there is none.
	Value(Key) ([]byte, error)

	// Names yields the names of the dirents or the attributes (kind) of an inode until yield returns false.
	Names(kind KeyKind, ino Ino, yield func(name string) bool) error

	// MayMake reports whether the peer may make an inode of that number, which is not there: the peer was leased it, or it
	// is that of an inode that was there and has been removed, which an edit elsewhere now brings back.
	MayMake(Ino) (bool, error)
}

// CheckPush decides whether a push may be applied to a state that is a valid tree. It reads a few keys of the state for
// each record, and keeps a few hundred bytes.
//
// A record whose key has another value than the one that the push is based on, and another than the pushed one, makes
// the push stale: the current records of such keys are returned, at most MaxStale of them. So are the directories outside
// of the push with which it would make a loop: of two mirrors that each move a directory into the other's, which can
// touch no common record, the second learns what the first did.
//
// A record that is as the push makes it, though the push is based on another, passes; it is stale only when what the push
// makes is no tree. So it is when two mirrors each give a file another name at the same time: the file's record is the
// same in both pushes, but counts only one of the names.
//
// Otherwise the tree as it would be is checked where the push touches it:
//
//   - Records are canonical and within their limits. The body of a file is of the file's size.
//   - A dirent is in a directory and leads to an inode of its type.
//   - An inode has a name, but for the root, and its link count is that of its names; a directory has one name only,
//     which is in its parent, and 2 links and one for each directory in it.
//   - Every directory hangs from the root.
//   - An inode's count of attributes is right, and their names fit into one list.
//   - What is removed leaves no name, no entry and no attribute behind. The root stays.
//   - The type of an inode stays, and the number of a new one is the peer's to give.
//
// The error wraps ErrInvalid for what is not a tree, ErrCorrupt for a record that does not decode, ErrNotPermitted for a
// number that is not the peer's, ErrTooManyLinks, ErrNameTooLong or ErrXattrTooBig for what passes those limits. An error
// of the view is returned as it is.
func CheckPush(view PushView, p *Push) (stale []Record, err error) {
	return newPushCheck(view, p).run(p)
}

// CheckMending is CheckPush for records that make a valid tree of a state which may be none, because it was put together
// from several revisions or is damaged. What the state says about how many names, directories and attributes an inode has
// is then not to be counted on from: the counts of the records are taken as they are, and so is a parent whose name for
// the directory is there already. An inode may become one of another type, whose number was given again. Everything else is as in
// CheckPush.
func CheckMending(view PushView, p *Push) (stale []Record, err error) {
	c := newPushCheck(view, p)
	c.mending = true
	return c.run(p)
}

func newPushCheck(view PushView, p *Push) *pushCheck {
	return &pushCheck{view: view, pushed: make(map[Key][]byte, len(p.Records)), nodes: make(map[Ino]*pushedNode)}
}

func (c *pushCheck) run(p *Push) (stale []Record, err error) {
	if err := c.take(p); err != nil {
		return nil, err
	}
	if stale, err = c.compare(p); err != nil || len(stale) > 0 {
		return stale, err
	}
	for _, check := range []func() error{c.count, c.checkDirents, c.checkNodes, c.checkPaths} {
		switch err := check(); {
		case errors.Is(err, ErrInvalid) && len(c.passed) > 0:
			return c.passed, nil
		case err != nil:
			return nil, err
		}
	}
	return c.stale, nil
}

type pushCheck struct {
	view    PushView
	pushed  map[Key][]byte
	changed []keyChange // what is really another than before
	passed  []Record    // what is as the push makes it, but not what that is based on; at most MaxStale
	nodes   map[Ino]*pushedNode
	stale   []Record
	mending bool // nothing is counted on from what was
}

type keyChange struct {
	Key
	old, new []byte
}

// pushedNode is an inode that the push touches, and what it does to it.
type pushedNode struct {
	old, new *InodeRecord // nil when it is not there
	names    int64        // by how much the number of its names grows
	subdirs  int64        // of the directories in it
	xattrs   int64        // of its attributes
	list     int64        // by how many bytes the list of its attributes' names grows
	placed   Ino          // a directory in which it gets a name, or zero
}

// take checks what can be seen of the records alone.
func (c *pushCheck) take(p *Push) error {
	if len(p.Records) > MaxPushRecords {
		return fmt.Errorf("push of %d records: %w", len(p.Records), ErrInvalid)
	}
	size := 0
	for i := range p.Records {
		r := &p.Records[i].Record
		if err := r.check(); err != nil {
			return err
		}
		if _, twice := c.pushed[r.Key]; twice {
			return fmt.Errorf("push: %v is there twice: %w", r.Key, ErrInvalid)
		}
		c.pushed[r.Key] = r.Value
		size += len(r.Name) + len(r.Value)
	}
	if size > MaxPushBytes {
		return fmt.Errorf("push of %d bytes: %w", size, ErrInvalid)
	}
	return nil
}

// check returns an error unless r may be a record of some workspace.
func (r *Record) check() error {
	err := r.Key.Valid()
	if err != nil || r.Value == nil {
		return err
	}
	switch r.Kind {
	case KeyInode:
		err = checkInode(r.Value)
	case KeyDirent:
		_, err = DecodeDirent(r.Value)
	case KeyXattr:
		if len(r.Value) > MaxXattrSize {
			err = ErrXattrTooBig
		}
	}
	if err != nil {
		return fmt.Errorf("%v: %w", r.Key, err)
	}
	return nil
}

func checkInode(value []byte) error {
	rec, err := DecodeInode(value)
	if err != nil {
		return err
	}
	if device := rec.Type == TypeCharDev || rec.Type == TypeBlockDev; rec.Rdev != 0 && !device {
		return fmt.Errorf("type %d with device number %x: %w", rec.Type, rec.Rdev, ErrCorrupt)
	}
	_, err = rec.ChunkRefs()
	return err
}

// compare finds what the push changes, and what of it is based on other records than those that are there.
func (c *pushCheck) compare(p *Push) (stale []Record, err error) {
	for i := range p.Records {
		r := &p.Records[i]
		old, err := c.view.Value(r.Key)
		if err != nil {
			return nil, err
		}
		current := Record{Key: r.Key, Value: old}
		based := current.Base() == r.Base
		if current.Same(&r.Record) {
			if !based && len(c.passed) < MaxStale {
				c.passed = append(c.passed, Record{Key: r.Key, Value: bytes.Clone(old)})
			}
			continue
		}
		current.Value = bytes.Clone(old)
		if based {
			c.changed = append(c.changed, keyChange{r.Key, current.Value, r.Value})
		} else if stale = append(stale, current); len(stale) == MaxStale {
			break
		}
	}
	return stale, nil
}

// node returns what the push does to an inode, which it reads the first time.
func (c *pushCheck) node(ino Ino) (*pushedNode, error) {
	if n := c.nodes[ino]; n != nil {
		return n, nil
	}
	key := Key{Kind: KeyInode, Ino: ino}
	value, err := c.view.Value(key)
	if err != nil {
		return nil, err
	}
	n := new(pushedNode)
	if n.old, err = inodeOrNil(value); err != nil {
		return nil, err
	}
	n.new = n.old
	if value, ok := c.pushed[key]; ok {
		if n.new, err = inodeOrNil(value); err != nil {
			return nil, err
		}
	}
	c.nodes[ino] = n
	return n, nil
}

func inodeOrNil(value []byte) (*InodeRecord, error) {
	if value == nil {
		return nil, nil
	}
	r, err := DecodeInode(bytes.Clone(value))
	return &r, err
}

// count adds up what the changes do to each inode.
func (c *pushCheck) count() error {
	for _, k := range c.changed {
		n, err := c.node(k.Ino)
		if err != nil {
			return err
		}
		switch k.Kind {
		case KeyDirent:
			err = c.countName(n, k)
		case KeyXattr:
			grow := presence(k.new) - presence(k.old)
			n.xattrs += grow
			n.list += grow * int64(len(k.Name)+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func presence(value []byte) int64 {
	if value == nil {
		return 0
	}
	return 1
}

func (c *pushCheck) countName(dir *pushedNode, k keyChange) error {
	for _, side := range []struct {
		value []byte
		sign  int64
	}{{k.old, -1}, {k.new, 1}} {
		if side.value == nil {
			continue
		}
		d, err := DecodeDirent(side.value)
		if err != nil {
			return err
		}
		n, err := c.node(d.Ino)
		if err != nil {
			return err
		}
		n.names += side.sign
		if d.Type == TypeDir {
			dir.subdirs += side.sign
		}
		if side.sign > 0 {
			n.placed = k.Ino
		}
	}
	return nil
}

// checkDirents: names that are given are in a directory and lead to what they say; a directory's is in its parent.
func (c *pushCheck) checkDirents() error {
	for _, k := range c.changed {
		if k.Kind != KeyDirent || k.new == nil {
			continue
		}
		d, err := DecodeDirent(k.new)
		if err != nil {
			return err
		}
		dir, n := c.nodes[k.Ino].new, c.nodes[d.Ino].new
		switch {
		case dir == nil || dir.Type != TypeDir:
			return fmt.Errorf("%v is in what is no directory: %w", k.Key, ErrInvalid)
		case n == nil || n.Type != d.Type:
			return fmt.Errorf("%v leads to inode %d of type %d, which is not there: %w", k.Key, d.Ino, d.Type, ErrInvalid)
		case n.Type == TypeDir && n.Parent != k.Ino:
			return fmt.Errorf("%v leads to a directory whose parent is %d: %w", k.Key, n.Parent, ErrInvalid)
		}
	}
	return nil
}

func (c *pushCheck) checkNodes() error {
	for ino, n := range c.nodes {
		err := c.checkXattrs(ino, n)
		switch {
		case err != nil:
		case n.new == nil:
			err = c.checkRemoved(ino, n)
		default:
			err = c.checkNode(ino, n)
		}
		if err != nil {
			return fmt.Errorf("inode %d: %w", ino, err)
		}
	}
	return nil
}

// oldNames is how many names the inode has in the state.
func (n *pushedNode) oldNames(ino Ino) int64 {
	switch {
	case n.old == nil || ino == RootIno:
		return 0
	case n.old.Type == TypeDir:
		return 1
	}
	return int64(n.old.Nlink)
}

func (c *pushCheck) checkRemoved(ino Ino, n *pushedNode) error {
	switch names := n.oldNames(ino) + n.names; {
	case ino == RootIno:
		return fmt.Errorf("the root is removed: %w", ErrInvalid)
	case names != 0 && !c.mending:
		return fmt.Errorf("removed, with %d names: %w", names, ErrInvalid)
	case n.old == nil || n.old.Type != TypeDir:
		return nil
	}
	return c.checkEmptied(ino)
}

// checkEmptied: a directory that there is no more has no names in it.
func (c *pushCheck) checkEmptied(ino Ino) error {
	left := ""
	err := c.view.Names(KeyDirent, ino, func(name string) bool {
		if value, ok := c.pushed[Key{KeyDirent, ino, name}]; !ok || value != nil {
			left = name
		}
		return left == ""
	})
	if err == nil && left != "" {
		err = fmt.Errorf("no directory, with %q in it: %w", left, ErrInvalid)
	}
	return err
}

func (c *pushCheck) checkNode(ino Ino, n *pushedNode) error {
	if n.old == nil {
		if ok, err := c.view.MayMake(ino); err != nil {
			return err
		} else if !ok {
			return fmt.Errorf("the number is not the peer's: %w", ErrNotPermitted)
		}
	} else if n.old.Type != n.new.Type && !c.mending {
		return fmt.Errorf("of type %d becomes one of type %d: %w", n.old.Type, n.new.Type, ErrInvalid)
	}
	if c.mending {
		if n.old != nil && n.old.Type == TypeDir && n.new.Type != TypeDir {
			return c.checkEmptied(ino)
		}
		return nil
	}
	if n.new.Type == TypeDir {
		return n.checkDir(ino)
	}
	want := n.oldNames(ino) + n.names
	switch {
	case want != int64(n.new.Nlink) || want == 0:
		return fmt.Errorf("link count %d with %d names: %w", n.new.Nlink, want, ErrInvalid)
	case want > MaxLinks:
		return fmt.Errorf("%d links: %w", want, ErrTooManyLinks)
	}
	return nil
}

func (n *pushedNode) checkDir(ino Ino) error {
	names, links := int64(1), int64(2)
	if ino == RootIno {
		names = 0
	}
	if n.old != nil {
		links = int64(n.old.Nlink)
	}
	switch {
	case n.oldNames(ino)+n.names != names:
		return fmt.Errorf("a directory with %d names: %w", n.oldNames(ino)+n.names, ErrInvalid)
	case links+n.subdirs != int64(n.new.Nlink):
		return fmt.Errorf("a directory of link count %d, not %d: %w", n.new.Nlink, links+n.subdirs, ErrInvalid)
	case n.moved() && n.placed == 0 && (ino != RootIno || n.new.Parent != RootIno):
		return fmt.Errorf("a directory whose parent becomes %d and whose name is elsewhere: %w", n.new.Parent, ErrInvalid)
	}
	return nil
}

// moved reports whether a directory gets another parent, or its first.
func (n *pushedNode) moved() bool { return n.old == nil || n.old.Parent != n.new.Parent }

func (c *pushCheck) checkXattrs(ino Ino, n *pushedNode) error {
	var had, has, list int64
	if n.old != nil {
		had = int64(n.old.Xattrs)
	}
	if n.new != nil {
		has = int64(n.new.Xattrs)
	}
	if had+n.xattrs != has && !c.mending {
		return fmt.Errorf("count of %d attributes, not %d: %w", has, had+n.xattrs, ErrInvalid)
	}
	if n.list <= 0 {
		return nil
	}
	err := c.view.Names(KeyXattr, ino, func(name string) bool {
		list += int64(len(name) + 1)
		return true
	})
	if err == nil && list+n.list > MaxXattrList {
		err = fmt.Errorf("%d bytes of names of attributes: %w", list+n.list, ErrXattrTooBig)
	}
	return err
}

// checkPaths: every directory that is new or moved hangs from the root.
func (c *pushCheck) checkPaths() error {
	rooted := map[Ino]bool{RootIno: true}
	for _, k := range c.changed {
		n := c.nodes[k.Ino]
		if k.Kind != KeyInode || n.new == nil || n.new.Type != TypeDir || !n.moved() {
			continue
		}
		if err := c.climb(k.Ino, rooted); err != nil || len(c.stale) > 0 {
			return err
		}
	}
	return nil
}

// climb follows parents up to a directory that is known to hang from the root, so that all climbs together take no more
// steps than there are directories on the way.
func (c *pushCheck) climb(ino Ino, rooted map[Ino]bool) error {
	var path []Ino
	onPath := make(map[Ino]bool)
	for ; !rooted[ino]; ino = c.nodes[ino].new.Parent {
		if onPath[ino] {
			return c.loop(path, ino)
		}
		path, onPath[ino] = append(path, ino), true
		n, err := c.node(ino)
		if err != nil {
			return err
		}
		if n.new == nil || n.new.Type != TypeDir {
			return fmt.Errorf("inode %d: parent of a directory and no directory: %w", ino, ErrInvalid)
		}
	}
	for _, up := range path {
		rooted[up] = true
	}
	return nil
}

// loop makes the push stale for the directories of a loop that are not in it. When all are, it is no tree.
func (c *pushCheck) loop(path []Ino, from Ino) error {
	for i := len(path) - 1; ; i-- {
		key := Key{Kind: KeyInode, Ino: path[i]}
		if _, ok := c.pushed[key]; !ok && len(c.stale) < MaxStale {
			value, err := c.view.Value(key)
			if err != nil {
				return err
			}
			c.stale = append(c.stale, Record{Key: key, Value: bytes.Clone(value)})
		}
		if path[i] == from {
			break
		}
	}
	if len(c.stale) == 0 {
		return fmt.Errorf("inode %d: a directory inside itself: %w", from, ErrInvalid)
	}
	return nil
}
