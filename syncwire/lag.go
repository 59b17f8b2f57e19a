package syncwire

import (
	"sync"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// lag is how far the client of a session is behind what was sent to it.
type lag struct {
	mu     sync.Mutex
	sent   vfs.Rev
	acked  vfs.Rev
	behind time.Time // since when acked has been below sent; zero while it is not
}

// send notes that the feed was sent up to rev.
func (l *lag) send(rev vfs.Rev, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = max(l.sent, rev)
	l.lookLocked(now)
}

// acknowledge notes that the client has everything up to rev. Acks never go back.
func (l *lag) acknowledge(rev vfs.Rev, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if rev > l.acked {
		l.acked, l.behind = rev, time.Time{}
	}
	l.lookLocked(now)
}

func (l *lag) lookLocked(now time.Time) {
	switch {
	case l.acked >= l.sent:
		l.behind = time.Time{}
	case l.behind.IsZero():
		l.behind = now
	}
}

func (l *lag) state(now time.Time) (sent, acked vfs.Rev, behind time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.behind.IsZero() {
		behind = now.Sub(l.behind)
	}
	return l.sent, l.acked, behind
}
