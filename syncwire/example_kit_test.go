package syncwire_test

import (
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire/wiretest"
)

// The authority of the example is a whole one.
func TestExampleAuthority(t *testing.T) {
	wiretest.Run(t, func(*testing.T) wiretest.Subject {
		a := newLedger()
		return wiretest.Subject{Peer: func(n int) (vfs.Authority, vfs.PeerID) { return a, vfs.PeerID{byte(n + 1)} }}
	})
}
