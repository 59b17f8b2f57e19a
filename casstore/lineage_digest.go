package casstore

import (
	"errors"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// inheritedDigest finds the digest of a fork from that of an origin which was replicated, and from what has changed since.
// found is false when there is no such origin, or the store no longer knows what has changed.
func (s *Store) inheritedDigest(ws workspaceID, head *reader, alive func() error) (d vfs.Digest, found bool, err error) {
	origins := s.origins(ws)
	for i := range origins {
		d, found, err := s.originDigest(origins[i:], alive)
		if err != nil {
			return d, false, err
		}
		if !found {
			continue
		}
		for ; i > 0 && err == nil; i-- {
			above := origins[i-1]
			at := s.readerAt(above.rev)
			err = addLayer(&d, at, above.ws, origins[i:], alive)
			at.Close()
		}
		if err == nil {
			err = addLayer(&d, head, ws, origins, alive)
		}
		return d, err == nil, err
	}
	return d, false, nil
}

// originDigest returns the digest of the first of some origins, if what is written there says it.
func (s *Store) originDigest(origins []origin, alive func() error) (d vfs.Digest, found bool, err error) {
	o := origins[0]
	at := s.readerAt(o.rev).as(o.ws, origins[1:])
	defer at.Close()
	rec, err := at.standing(o.ws)
	if errors.Is(err, vfs.ErrNotExist) {
		return d, false, nil
	}
	if err != nil {
		return d, false, err
	}
	old := s.readerSince(rec.at)
	if old == nil {
		return d, false, nil
	}
	defer old.Close()
	st := rec.standing
	err = st.follow(o.ws, old.as(o.ws, origins[1:]), at, alive)
	return st.digest, err == nil, err
}

// addLayer makes the digest of what a fork began with, the first of its origins, that of the fork as a reader sees it.
func addLayer(d *vfs.Digest, at *reader, ws workspaceID, origins []origin, alive func() error) error {
	below := origins[0]
	base := at.store.readerAt(below.rev).as(below.ws, origins[1:])
	defer base.Close()
	var change digestChange
	err := at.records(ws, vfs.AllInos, 1, func(r vfs.Record) error {
		if err := change.replace(base, below.ws, r); err != nil {
			return err
		}
		return alive()
	})
	*d = d.Plus(change.delta)
	return err
}
