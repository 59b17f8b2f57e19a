package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// origin is the mirror as its local store asks it for what is not there.
type origin struct{ *Mirror }

var _ casstore.Origin = origin{}

// Load implements casstore.Origin.
func (o origin) Load(ctx context.Context, ino vfs.Ino, all bool) error {
	return o.loader.want(ctx, ino, all)
}

// Numbers implements casstore.Origin.
func (o origin) Numbers(ctx context.Context) error {
	o.change(func() {}) // leaseAlways looks
	return o.await(ctx, func() (bool, error) { return o.replica.Numbers() > 0, nil })
}

// Fetch implements casstore.Origin.
func (o origin) Fetch(ctx context.Context, id chunk.ID) error {
	return o.fetcher.fetch(ctx, []chunk.ID{id})
}

// leaseAlways keeps enough numbers for new inodes.
func (m *Mirror) leaseAlways() {
	for pause := retryFirst; m.ctx.Err() == nil; {
		err := m.leaseOnce()
		switch {
		case err == nil:
			pause = retryFirst
		case m.ctx.Err() != nil:
			return
		default:
			m.log.Debug("no numbers for new inodes", "err", err)
			m.pause(pause)
			pause = min(2*pause, retryLast)
		}
	}
}

// leaseOnce waits until numbers are needed, and leases some.
func (m *Mirror) leaseOnce() error {
	for {
		_, moved := m.position()
		if m.replica.Numbers() < leaseLow && !m.config.ReadOnly {
			break
		}
		select {
		case <-moved:
		case <-m.ctx.Done():
			return interrupted(m.ctx)
		}
	}
	in, err := m.config.Peer.LeaseInos(m.ctx, vfs.PeerID{}, leaseSize)
	if err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	if err := m.loader.own(m.ctx, in); err != nil {
		return err
	}
	err = m.replica.AddNumbers(in)
	m.loader.added()
	m.change(func() {})
	if errors.Is(err, vfs.ErrBusy) {
		m.pause(time.Minute)
	}
	return err
}
