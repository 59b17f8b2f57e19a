package tools

import (
	"encoding/json"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
)

// gathering keeps the beginning and the end of an exec's output, and its result.
//
// A place in the output is "SEQ+N": N bytes after the event SEQ. One event can hold more than one result.
type gathering struct {
	seq  uint64 // the last event that was had
	skip int    // bytes of the next that were had too
	room int    // how long head may become

	head []byte
	tail []byte // twice what is wanted of it at most
	cut  uint64 // bytes between them
	lost uint64 // bytes that are not in the log any more
	gap  string // the place where head ends
	end  *execd.Result
}

func newGathering(after string) (*gathering, error) {
	if after == "" {
		return &gathering{room: outputHead}, nil
	}
	g := &gathering{room: MaxOutput} // who goes on reading wants all of it, in order
	if n, err := fmt.Sscanf(after, "%d+%d", &g.seq, &g.skip); n != 2 || err != nil || g.skip < 0 {
		return nil, fmt.Errorf("exec: after %q: %w", after, vfs.ErrInvalid)
	}
	return g, nil
}

func (g *gathering) event(e execd.Event) {
	switch e.Stream {
	case execd.Stdout, execd.Stderr:
		g.add(e)
	case execd.Gap:
		g.lost += e.Lost
	case execd.Exited:
		r := new(execd.Result)
		if err := json.Unmarshal(e.Data, r); err != nil {
			r = &execd.Result{Status: execd.StatusLost, Reason: err.Error()}
		}
		g.end = r
	}
	g.seq, g.skip = e.Seq, 0
}

func (g *gathering) add(e execd.Event) {
	had := min(g.skip, len(e.Data))
	data := e.Data[had:]
	if g.gap == "" {
		n := min(len(data), g.room-len(g.head))
		g.head, data = append(g.head, data[:n]...), data[n:]
		if len(data) > 0 {
			g.gap = fmt.Sprintf("%d+%d", e.Seq-1, had+n)
		}
	}
	g.tail = append(g.tail, data...)
	if n := len(g.tail) - (MaxOutput - g.room); n > MaxOutput {
		g.cut += uint64(n)
		g.tail = append(g.tail[:0], g.tail[n:]...)
	}
}

func (g *gathering) answer(id string) *ExecResult {
	r := &ExecResult{ID: id, Status: "running"}
	if n := len(g.tail) - (MaxOutput - g.room); n > 0 {
		g.cut, g.tail = g.cut+uint64(n), g.tail[n:]
	}
	r.Output = g.text()
	if g.cut > 0 {
		r.CutBytes, r.CutAfter = g.cut, g.gap
	}
	if g.end == nil {
		r.Next = fmt.Sprintf("%d+%d", g.seq, g.skip)
		return r
	}
	e := g.end
	r.Status, r.Code, r.Signal, r.Reason = string(e.Status), &e.Code, e.Signal, e.Reason
	r.Changes, r.Pending = e.Changes, e.Pending
	switch {
	case len(e.Value) > MaxOutput:
		r.ValueCut = true
	case e.Value != nil:
		r.Value = e.Value
	}
	return r
}

// text is what a model sees of the output.
func (g *gathering) text() string {
	s := readable(string(g.head))
	if g.cut > 0 {
		s += fmt.Sprintf("\n[… %d bytes left out …]\n", g.cut)
	}
	s += readable(string(g.tail))
	if g.lost > 0 {
		s += fmt.Sprintf("\n[%d bytes are not kept any more]\n", g.lost)
	}
	return s
}
