package api

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd"
	carrelv1 "github.com/carrelfs/carrel/execd/api/carrel/v1"
)

// nodeMessage puts a node on the wire under a path or a name.
func nodeMessage(ctx context.Context, fs treepath.FS, path string, a vfs.Attr) (*carrelv1.Node, error) {
	n := &carrelv1.Node{
		Type: typeNames[a.Type], Mode: a.Mode, Size: a.Size, Mtime: timestamppb.New(a.Mtime.Go()), Ino: uint64(a.Ino),
		Nlink: a.Nlink, Uid: a.UID, Gid: a.GID,
	}
	n.Path, n.RawPath = readable(path)
	if a.Type == vfs.TypeSymlink {
		target, err := fs.Tree.Readlink(ctx, a.Ino)
		if err != nil {
			return nil, err
		}
		n.Target, n.RawTarget = readable(target)
	}
	return n, nil
}

func changeMessage(d execd.Difference) *carrelv1.FileChange {
	m := &carrelv1.FileChange{Kind: string(d.Kind), Type: typeNames[d.Type], Fields: d.Fields, Size: d.Size}
	m.Path, m.RawPath = readable(d.Path)
	m.From, m.RawFrom = readable(d.From)
	return m
}

// Change is the inverse of changeMessage, for clients.
func Change(m *carrelv1.FileChange) execd.Difference {
	d := execd.Difference{
		Kind: execd.DifferenceKind(m.GetKind()), Path: rawOr(m.GetPath(), m.GetRawPath()), From: rawOr(m.GetFrom(), m.GetRawFrom()),
		Size: m.GetSize(), Fields: m.GetFields(),
	}
	for t, name := range typeNames {
		if name == m.GetType() {
			d.Type = t
		}
	}
	return d
}
