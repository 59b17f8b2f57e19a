package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
	"github.com/carrelfs/carrel/syncwire/exclusive"
)

// writer is what the server has said of who may write.
type writer struct {
	state exclusive.State
	heard time.Time // when it last did; zero for never
}

// writerAlways follows who may write, and claims to with Config.Exclusive. A server that does not know of this lets everybody write:
// that is not what an exclusive mirror is for, which then is read-only.
func (m *Mirror) writerAlways() {
	if m.config.ReadOnly {
		return
	}
	for pause := retryFirst; m.ctx.Err() == nil; pause = min(2*pause, retryLast) {
		err := exclusive.Follow(m.ctx, m.config.Peer, m.config.Exclusive, func(s exclusive.State) {
			m.change(func() {
				m.writer = writer{state: s, heard: time.Now()}
				if s != exclusive.Others && errors.Is(m.refuse, vfs.ErrReadOnly) {
					m.refuse = nil // it is tried again before long
				}
			})
			pause = retryFirst
		})
		switch {
		case m.ctx.Err() != nil:
			return
		case errors.Is(err, syncwire.ErrNoService) && !m.config.Exclusive:
			return
		case !m.config.Exclusive: // it is not known: what is written meanwhile is merged
			m.change(func() { m.writer.state = exclusive.Free })
		}
		m.log.Warn("it is not known who may write", "err", err, "again in", pause)
		m.pause(pause)
	}
}

// isWriter returns ErrReadOnly unless this mirror may write.
func (m *Mirror) isWriter() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch w := m.writer; {
	case !m.config.Exclusive && w.state != exclusive.Others:
		return nil
	case m.config.Exclusive && w.state == exclusive.Yours && time.Since(w.heard) < exclusive.Patience:
		return nil
	}
	return fmt.Errorf("another mirror has the workspace to itself: %w", vfs.ErrReadOnly)
}

// AwaitWriter waits until it is known whether this mirror may write, if it is an exclusive one, for some time at the most.
func (m *Mirror) AwaitWriter() {
	if !m.config.Exclusive {
		return
	}
	ctx, cancel := context.WithTimeout(m.ctx, writerPatience)
	defer cancel()
	_ = m.await(ctx, func() (bool, error) { return !m.writer.heard.IsZero(), nil }) // it is read-only till then
}
