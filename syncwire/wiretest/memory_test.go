package wiretest

import (
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

func subjectOf(a vfs.Authority) Subject {
	return Subject{Peer: func(n int) (vfs.Authority, vfs.PeerID) { return a, vfs.PeerID{byte(n + 1)} }}
}

func TestMemory(t *testing.T) {
	Run(t, func(*testing.T) Subject { return subjectOf(NewMemory(vfs.Epoch{1})) })
}
