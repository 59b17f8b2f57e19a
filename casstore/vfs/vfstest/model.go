package vfstest

import (
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/memtree"
)

// Tree is a workspace tree in memory. Use NewTree.
type Tree = memtree.Tree

// Option changes what NewTree makes.
type Option = memtree.Option

// NewTree is memtree.NewTree.
func NewTree(options ...Option) *Tree { return memtree.NewTree(options...) }

// WithClock is memtree.WithClock.
func WithClock(clock func() vfs.Time) Option { return memtree.WithClock(clock) }

// WithCapacity is memtree.WithCapacity.
func WithCapacity(bytes uint64) Option { return memtree.WithCapacity(bytes) }
