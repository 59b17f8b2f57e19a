package join

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// socketName is the socket of a join, in its state's directory, which only its user may enter.
const socketName = "join.sock"

// maxRequest bounds a request, in bytes.
const maxRequest = 4 << 10

// Request is what a join is asked, in JSON; one a connection.
type Request struct {
	Op     string               `json:"op"` // now, status, conflicts, resolve, leave
	Number uint64               `json:"number,omitempty"`
	How    reconcile.Resolution `json:"how,omitempty"`
}

// Reply is the answer, in JSON.
type Reply struct {
	Error     string             `json:"error,omitempty"`
	Status    *Status            `json:"status,omitempty"`
	Conflicts []reconcile.Listed `json:"conflicts,omitempty"`
}

// Status says how a join is doing.
type Status struct {
	Workspace  string  `json:"workspace"`
	Dir        string  `json:"dir"`
	PID        int     `json:"pid"`
	Drain      float64 `json:"drain_seconds"` // for how long it pushes at the end
	Connected  bool    `json:"connected"`
	Trouble    string  `json:"trouble,omitempty"` // why it is not, or why nothing is pushed
	Whole      bool    `json:"whole"`             // all metadata is here
	Revision   vfs.Rev `json:"revision"`          // up to which everything is here
	Pending    int     `json:"pending_records"`
	Conflicts  int     `json:"conflicts"`
	ReadOnly   bool    `json:"read_only"`         // because another mirror has the workspace to itself
	Machine    string  `json:"machine,omitempty"` // by which name it runs what others send
	Pushes     uint64  `json:"pushes"`
	Stale      uint64  `json:"stale_pushes"`
	Records    uint64  `json:"records_in"`
	Chunks     uint64  `json:"chunks_in"`
	ChunkBytes uint64  `json:"chunk_bytes_in"`
	Mismatches uint64  `json:"digest_mismatches"`
	Repaired   uint64  `json:"records_repaired"`
	Compared   uint64  `json:"full_comparisons"`
}

// socket answers requests until it is closed.
type socket struct {
	session *session
	l       net.Listener
	ctx     context.Context
	stop    context.CancelFunc
	group   sync.WaitGroup
}

func listen(s *session) (*socket, error) {
	l, err := listenAt(filepath.Join(s.config.State, socketName))
	if err != nil {
		return nil, err
	}
	k := &socket{session: s, l: l}
	k.ctx, k.stop = context.WithCancel(context.Background())
	k.group.Go(k.accept)
	return k, nil
}

func (k *socket) close() error {
	k.stop()
	err := k.l.Close()
	k.group.Wait()
	return err
}

func (k *socket) accept() {
	for {
		c, err := k.l.Accept()
		if err != nil {
			return // it is closed
		}
		k.group.Go(func() { k.answer(c) })
	}
}

func (k *socket) answer(c net.Conn) {
	defer c.Close() // the reply has been written, or cannot be
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	var req Request
	b := make([]byte, maxRequest)
	n, err := c.Read(b)
	if err == nil {
		err = json.Unmarshal(b[:n], &req)
	}
	if err != nil {
		return
	}
	go func() {
		_, _ = c.Read(b) // returns when the client has gone
		cancel()
	}()
	reply, err := k.session.do(ctx, req)
	if err != nil {
		reply = Reply{Error: err.Error()}
	}
	_ = json.NewEncoder(c).Encode(reply) // a client that has gone needs none
}

func (s *session) do(ctx context.Context, req Request) (r Reply, err error) {
	switch req.Op {
	case "now":
		if err = s.mirror.Now(ctx); err == nil {
			err = s.runner.execs.Flush(ctx, s.config.Workspace)
		}
	case "status":
		r.Status, err = s.status(ctx)
	case "conflicts":
		r.Conflicts, err = s.mirror.ListConflicts(ctx)
	case "resolve":
		err = s.mirror.Resolve(ctx, req.Number, req.How)
	case "leave": // also when it is busy; it is told before it has
		s.leave()
	default:
		err = fmt.Errorf("request %q: %w", req.Op, vfs.ErrNotSupported)
	}
	return r, err
}

func (s *session) status(ctx context.Context) (*Status, error) {
	st, err := s.mirror.Status(ctx)
	if err != nil {
		return nil, err
	}
	out := &Status{
		Workspace: s.config.Workspace, Dir: s.config.Dir, PID: os.Getpid(), Drain: s.config.Drain.Seconds(), Connected: st.Link.Connected, Whole: st.Whole,
		Revision: st.Position.Rev, Pending: st.Pending, Conflicts: st.Conflicts, ReadOnly: st.ReadOnly, Pushes: st.Pushes, Stale: st.Stale,
		Records: st.Records, Chunks: st.Fetched, ChunkBytes: st.FetchedB, Mismatches: st.Mismatches, Repaired: st.Repaired,
		Compared: st.Compared, Machine: s.config.Machine,
	}
	trouble := errors.Join(st.Link.Err, st.Refused)
	if s.runner.offer != nil && trouble == nil {
		trouble = s.runner.offer.Trouble()
	}
	if trouble != nil {
		out.Trouble = trouble.Error()
	}
	return out, nil
}

// Ask asks the join whose state is in a directory. ErrNotExist when none runs there.
func Ask(ctx context.Context, state string, req Request) (Reply, error) {
	var reply Reply
	c, err := new(net.Dialer).DialContext(ctx, "unix", filepath.Join(state, socketName))
	if err != nil {
		return reply, fmt.Errorf("no join runs with the state %s: %w: %w", state, vfs.ErrNotExist, err)
	}
	defer c.Close() // only one reply
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if err := json.NewEncoder(c).Encode(req); err != nil {
		return reply, err
	}
	if err := json.NewDecoder(c).Decode(&reply); err != nil {
		return reply, fmt.Errorf("the join has ended: %w: %w", vfs.ErrClosed, err)
	}
	if reply.Error != "" {
		return reply, errors.New(reply.Error)
	}
	return reply, nil
}

// Runs reports whether there is a join with a state, or was one that died.
func Runs(state string) bool {
	_, err := os.Lstat(filepath.Join(state, socketName))
	return err == nil
}
