package worker

import (
	"bufio"
	"encoding/gob"
	"fmt"
	"os"
	"slices"
)

// link is the connection to the daemon. It is for one goroutine, but for what reads.
type link struct {
	file    *os.File
	enc     *gob.Encoder
	replies chan Reply
	last    uint64
	kept    []Reply // came while another was waited for
}

// newLink waits for the job, and says that it is begun with: from here on it must not be given to another worker.
func newLink(f *os.File) (*link, Job, error) {
	in := NewLimited(f)
	dec := gob.NewDecoder(bufio.NewReaderSize(in, 64<<10))
	var job Job
	if err := dec.Decode(&job); err != nil {
		return nil, job, err
	}
	l := &link{file: f, enc: gob.NewEncoder(f), replies: make(chan Reply)}
	if err := l.enc.Encode(Call{Op: OpBegun}); err != nil {
		return nil, job, err
	}
	go l.read(in, dec) // until the process ends
	return l, job, nil
}

// read ends the process when the daemon has gone: the module may be in a loop, and asks for nothing.
func (l *link) read(in *Limited, dec *gob.Decoder) {
	for {
		in.Next()
		var r Reply
		if err := dec.Decode(&r); err != nil {
			os.Exit(exitLost)
		}
		l.replies <- r
	}
}

// send sends a call, whose answer comes later.
func (l *link) send(c Call) (id uint64) {
	l.last++
	c.ID = l.last
	if err := l.enc.Encode(c); err != nil {
		os.Exit(exitLost)
	}
	return c.ID
}

// do sends a call and waits for its answer.
func (l *link) do(c Call) Reply { return l.answer(l.send(c)) }

// answer waits for the answer to a call.
func (l *link) answer(id uint64) Reply {
	if r, ok := l.early(id); ok {
		return r
	}
	for {
		r := <-l.replies
		if r.ID == id {
			return r
		}
		l.kept = append(l.kept, r)
	}
}

// early returns the answer to a call when it came while another was waited for.
func (l *link) early(id uint64) (Reply, bool) {
	for i, r := range l.kept {
		if r.ID == id {
			l.kept = slices.Delete(l.kept, i, i+1)
			return r, true
		}
	}
	return Reply{}, false
}

// end says how it ended, and ends the process.
func (l *link) end(e End) {
	if err := l.enc.Encode(e.call()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(0)
}
