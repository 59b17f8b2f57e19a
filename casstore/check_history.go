package casstore

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// checkSnapshots: a snapshot is of a revision that there was, and has a root.
func (c *checker) checkSnapshots() error {
	return c.scan(keySnapshot, func(key, value []byte) {
		if len(key) < 10 || checkSnapshotName(string(key[9:])) != nil {
			c.problem(fmt.Sprintf("key %x", key), "is no snapshot's")
			return
		}
		ws := workspaceOfKey(key)
		where := fmt.Sprintf("workspace %s, snapshot %s", c.spaces[ws], key[9:])
		rec, err := decodeSnapshot(value)
		switch {
		case err != nil:
			c.problem(where, "%v", err)
			return
		case c.spaces[ws] == "":
			c.problem(where, "is of a workspace that is not there")
			return
		case rec.rev > c.r.rev:
			c.problem(where, "is of revision %d, which is to come", rec.rev)
			return
		}
		at := c.store.readerAt(rec.rev)
		defer at.Close()
		if _, err := at.inode(ws, vfs.RootIno); err != nil {
			c.problem(where, "has no root: %v", err)
		}
	})
}

// checkPast: every chunk is there that a revision shows which is kept.
func (c *checker) checkPast() error {
	kept := c.store.keptRevisions()
	if kept.history == 0 && len(kept.pins) == 0 {
		return nil
	}
	err := c.r.versions(c.ctx, func(v version) error {
		live, past := kept.wants(v.ws, v.rev, v.newer)
		if v.newest() || !live && !past {
			return nil // the newest have been looked at
		}
		rec, err := vfs.DecodeInode(v.value)
		if err == nil {
			err = c.checkBody(rec)
		}
		if err != nil && !errors.Is(err, vfs.ErrInterrupted) {
			c.problem(fmt.Sprintf("workspace %d, inode %d at revision %d", v.ws, v.ino, v.rev), "%v", err)
		}
		return nil
	})
	return err
}

// checkForks: what a fork came from is a revision that there was, its layers are no longer than they may be, and a whiteout hides
// something.
func (c *checker) checkForks() error {
	err := c.scan(keyFork, func(key, value []byte) {
		f, err := decodeFork(value)
		if err != nil || len(key) != 9 {
			c.problem(fmt.Sprintf("key %x", key), "is no fork's: %v", err)
			return
		}
		ws := workspaceOfKey(key)
		for _, o := range append([]origin{f.parent}, f.layers...) {
			if o.rev > c.r.rev || o.of > o.rev || o.ws >= ws && o.of == 0 {
				c.problem("workspace "+c.spaces[ws], "is a fork of workspace %d at revision %d, which was not there", o.ws, o.rev)
			}
		}
		c.forks[ws] = f
	})
	layers := make(map[workspaceID][]origin) // that were made of others, to those below each
	for ws, f := range c.forks {
		for i, o := range f.layers {
			if o.of > 0 {
				layers[o.ws] = f.layers[i+1:]
			}
		}
		if err == nil {
			err = c.checkLayer(ws, f.layers)
		}
	}
	for ws, below := range layers {
		if _, named := c.spaces[ws]; named {
			c.problem(fmt.Sprintf("layer %d", ws), "is a workspace, too")
		}
		if err == nil {
			err = c.checkLayer(ws, below)
		}
	}
	return err
}

// checkLayer looks at what a fork itself has, or a layer, over others.
func (c *checker) checkLayer(ws workspaceID, below []origin) (err error) {
	for _, kind := range inheritedKinds {
		if err == nil {
			err = c.checkOwn(ws, below, kind)
		}
	}
	return err
}

// checkOwn looks at what a fork itself has of a kind.
func (c *checker) checkOwn(ws workspaceID, below []origin, kind byte) error {
	return c.r.scanOwn(keyOfNode(kind, ws, 0)[:9], func(item *badger.Item) (bool, error) {
		where := fmt.Sprintf("workspace %s, key %x", c.spaces[ws], item.Key())
		switch {
		case isWhiteout(item):
			if err := c.r.getFrom(below, item.Key(), func([]byte) error { return nil }); err != nil {
				c.problem(where, "hides what is not there: %v", err)
			}
		case kind == keyInode:
			return true, item.Value(func(b []byte) error {
				rec, err := vfs.DecodeInode(b)
				if err == nil {
					err = c.checkBody(rec)
				}
				if err != nil {
					c.problem(where, "%v", err)
				}
				return nil
			})
		}
		return c.ctx.Err() == nil, nil
	})
}

// checkOrigin looks at the tree that forks began with. Of those that are as they began nothing else need be looked at.
func (c *checker) checkOrigin(origins []origin) error {
	o := origins[0]
	if c.origins[o] {
		return nil
	}
	c.origins[o] = true
	head := c.r
	defer func() { c.r = head }()
	c.r = c.store.readerAt(o.rev).as(o.ws, origins[1:])
	defer c.r.Close()
	return c.checkTree(checkedTree{ws: o.ws, name: fmt.Sprintf("%d at revision %d", o.ws, o.rev)})
}
