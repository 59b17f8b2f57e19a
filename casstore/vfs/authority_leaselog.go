package vfs

import "slices"

// LeaseLog gives inode numbers, from RootIno+1 on, and remembers to whom, in memory. An authority that outlives its process
// keeps what was leased on disk before it says so. The zero LeaseLog is ready. It is not safe for concurrent use.
type LeaseLog struct {
	last  Ino // that was given; zero for none
	peers map[PeerID][]InoRange
}

// Lease gives a peer n numbers that nobody else has had or gets.
func (l *LeaseLog) Lease(peer PeerID, n uint64) InoRange {
	if l.peers == nil {
		l.last, l.peers = RootIno, make(map[PeerID][]InoRange)
	}
	in := InoRange{First: l.last + 1, Last: l.last + Ino(n)}
	l.last = in.Last
	l.peers[peer] = append(l.peers[peer], in)
	return in
}

// Holds reports whether a peer was given a number.
func (l *LeaseLog) Holds(peer PeerID, ino Ino) bool {
	return slices.ContainsFunc(l.peers[peer], func(in InoRange) bool { return in.Contains(ino) })
}
