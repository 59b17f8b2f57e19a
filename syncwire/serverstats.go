package syncwire

import (
	"sync/atomic"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// serverCounters are what a server has done since it began.
type serverCounters struct {
	sessions, refused, badTokens, badKeys            atomic.Uint64
	pushes, stalePushes, missingPushes               atomic.Uint64
	chunksIn, chunksOut, chunkBytesIn, chunkBytesOut atomic.Uint64
	bytesIn, bytesOut                                atomic.Uint64
	snapshots, resumes, updates                      atomic.Uint64
	requests                                         [256]atomic.Uint64 // by type of frame
}

// ServerStats are the counters of a server, and its sessions.
type ServerStats struct {
	Sessions      []SessionStats    // that are there now
	Sockets       []SocketStats     // of the listeners that have one for all clients
	Begun         uint64            // sessions in all, those of clients that have come again among them
	Requests      map[string]uint64 // that were taken, by the name of the frame: each is a round trip of a client
	Snapshots     uint64            // feeds that began with everything
	Resumes       uint64            // feeds that went on from a cursor
	Updates       uint64            // that feeds have sent
	Refused       uint64            // streams that ended with an error that was told
	BadTokens     uint64
	BadKeys       uint64 // streams of clients whose keys were wanted and not known
	Pushes        uint64 // that were applied
	StalePushes   uint64
	MissingPushes uint64 // that lacked chunks
	BytesIn       uint64 // of all streams, without what the transport adds
	BytesOut      uint64
	ChunksIn      uint64
	ChunksOut     uint64
	ChunkBytesIn  uint64 // in stored form
	ChunkBytesOut uint64
}

// SessionStats is the state of a session.
type SessionStats struct {
	Workspace string
	Subject   string
	Peer      vfs.PeerID
	Agent     string
	Transport string
	GSO       bool // see StreamPeer
	Addr      string
	Sent      vfs.Rev       // up to where its feed was sent
	Acked     vfs.Rev       // up to where the client said that it has everything
	Behind    time.Duration // for how long Acked has been below Sent
	Since     time.Time     // when the session began
}

// Stats returns what the server has done and who is there.
func (s *Server) Stats() ServerStats {
	c := &s.stats
	stats := ServerStats{
		Begun: c.sessions.Load(), Requests: c.byName(), Snapshots: c.snapshots.Load(), Resumes: c.resumes.Load(),
		Updates: c.updates.Load(), Refused: c.refused.Load(), BadTokens: c.badTokens.Load(), BadKeys: c.badKeys.Load(),
		Pushes: c.pushes.Load(), StalePushes: c.stalePushes.Load(), MissingPushes: c.missingPushes.Load(),
		BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(), ChunksIn: c.chunksIn.Load(), ChunksOut: c.chunksOut.Load(),
		ChunkBytesIn: c.chunkBytesIn.Load(), ChunkBytesOut: c.chunkBytesOut.Load(),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		stats.Sessions = append(stats.Sessions, session.stats())
	}
	for l := range s.listeners {
		// A listener that is being closed has none any more.
		if socket, err := l.socket(); err == nil {
			stats.Sockets = append(stats.Sockets, socket)
		}
	}
	return stats
}

// byName has every request that there is, those that nobody has made too.
func (c *serverCounters) byName() map[string]uint64 {
	named := map[string]uint64{}
	for typ := range requests {
		named[typ.String()] = c.requests[typ].Load()
	}
	for _, typ := range []frameType{framePush, frameFetch, frameStore} {
		named[typ.String()] = c.requests[typ].Load()
	}
	return named
}

// countedStream counts what passes.
type countedStream struct {
	Stream
	counters *serverCounters
}

func (s *countedStream) Read(p []byte) (int, error) {
	n, err := s.Stream.Read(p)
	s.counters.bytesIn.Add(uint64(n))
	return n, err
}

func (s *countedStream) Write(p []byte) (int, error) {
	n, err := s.Stream.Write(p)
	s.counters.bytesOut.Add(uint64(n))
	return n, err
}
