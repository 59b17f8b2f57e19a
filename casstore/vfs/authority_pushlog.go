package vfs

import "fmt"

// PushLog remembers the newest PushMemory pushes of each peer, in memory. An authority that outlives its process keeps them
// with the records instead, in one transaction. The zero PushLog is ready. It is not safe for concurrent use.
type PushLog struct{ peers map[PeerID][]loggedPush }

type loggedPush struct {
	id      PushID
	sum     PushSum
	outcome Outcome
}

// Find returns the answer to a push that was applied before: ErrPushReused when that was another under the same id.
func (l *PushLog) Find(peer PeerID, p *Push) (o Outcome, known bool, err error) {
	for _, old := range l.peers[peer] {
		switch {
		case old.id != p.ID:
		case old.sum != p.Sum():
			return Outcome{}, true, fmt.Errorf("push %x: %w", p.ID, ErrPushReused)
		default:
			return old.outcome, true, nil
		}
	}
	return Outcome{}, false, nil
}

// Add remembers a push that was applied.
func (l *PushLog) Add(peer PeerID, p *Push, o Outcome) {
	if l.peers == nil {
		l.peers = make(map[PeerID][]loggedPush)
	}
	list := append(l.peers[peer], loggedPush{p.ID, p.Sum(), o})
	l.peers[peer] = list[max(0, len(list)-PushMemory):]
}
