package control

import (
	"context"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Serving is what an owner that serves its workspaces to other machines is asked to do. One that does not gives
// vfs.ErrNotSupported for Serve, and serves nothing.
type Serving interface {
	// Serve serves until ctx ends, and returns nil when all sessions have ended then, in order as far as they hurry.
	// ready is called once it serves; over the socket, on the connection's goroutine: it must not call the client.
	// vfs.ErrBusy while the store is being served already.
	Serve(ctx context.Context, o ServeOptions, ready func(Served)) error
	// Served says what is being served now, and to whom.
	Served(ctx context.Context) ([]Served, error)
	// TokensChanged reads the tokens of the store again, and ends the sessions of those that are gone.
	TokensChanged(ctx context.Context) error
}

// ServeOptions say what is to be served, and where.
type ServeOptions struct {
	Workspaces []string // names; nil for all that there are and will be
	Listen     string   // UDP and TCP address, host:port
	TLS        string   // another TCP address; empty for that of Listen
	Unix       string   // path of a unix socket; empty for the one in the store
	Metrics    string   // TCP address of the HTTP server of metrics; empty for none
	API        string   // TCP address of the HTTP API of execs and files, with TLS; empty for none
	ClientKeys string   // file of the keys of clients that are let in by UDP and TCP; empty for any
}

// Served is what a process serves, and to whom.
type Served struct {
	ServeOptions // with the addresses as they turned out
	Host         string
	Fingerprint  string // of the server's key
	Since        time.Time
	Peers        []Peer
	Sockets      []Socket
	Traffic      Traffic
}

// Socket is a UDP socket, through which all clients of an address come.
type Socket struct {
	Addr                    string
	ReadBuffer, WriteBuffer uint64 // bytes that the kernel lets wait, its own bookkeeping among them
	Dropped                 uint64 // packets that the kernel has dropped because nobody read them in time
}

// Peer is a session of a client.
type Peer struct {
	Workspace string
	Subject   string // for whom its token was made
	ID        vfs.PeerID
	Agent     string // what it says it is
	Transport string
	Addr      string
	GSO       bool   // on QUIC: the kernel cuts what is sent into packets
	Machine   string // by which name it runs what others send; empty when it does not
	Since     time.Time
	Head      vfs.Rev // the newest revision of the workspace
	Sent      vfs.Rev // up to where its feed was sent; zero when it follows none
	Acked     vfs.Rev // up to where it says that it has everything
	// Behind is by how many revisions of the workspace the peer is behind, of the newest of the store's at least; zero for who
	// follows no feed.
	Behind uint64
	// Lag is for how long there has been a revision above Acked; zero when there is none, and for who follows no feed.
	Lag time.Duration
}

// Traffic is what has passed since the serving began.
type Traffic struct {
	Sessions            uint64            // that were begun, by clients that have connected again too
	Requests            map[string]uint64 // by kind: each is a round trip of a client
	Snapshots, Resumes  uint64            // feeds that began with everything, and that went on from a cursor
	Updates             uint64            // that feeds have sent
	WireIn, WireOut     uint64            // bytes of all streams, without what the transport adds
	ChunksIn, ChunksOut uint64
	BytesIn, BytesOut   uint64 // of chunks, in stored form
	Pushes              uint64 // that were applied
	StalePushes         uint64 // that were based on something older than what there is
	MissingPushes       uint64 // that lacked chunks
	BadTokens           uint64
	BadKeys             uint64 // streams of clients whose keys are not in the file of client keys
	Refused             uint64 // streams that ended with an error that was told
}

// RoundTrips is how many requests there were, of any kind.
func (t *Traffic) RoundTrips() (n uint64) {
	for _, of := range t.Requests {
		n += of
	}
	return n
}
