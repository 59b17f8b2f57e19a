package js

import (
	"bufio"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/js/worker"
)

// stdinChunk is how much of standard input is given at once.
const stdinChunk = 64 << 10

// session is one run, seen from the daemon: it answers what the worker asks.
type session struct {
	*process
	fs     treepath.FS
	stdin  io.Reader
	out    execd.Output
	memory uint64

	mu  sync.Mutex // guards enc
	enc *gob.Encoder
}

// run sends the job and serves the worker to its end. When ctx ends first, the worker is killed.
func (s *session) run(ctx context.Context, job worker.Job) execd.Exit {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, s.kill)
	end, err := s.serve(ctx, job)
	stop()
	cancel()
	s.kill()
	if err != nil {
		return s.lost(err)
	}
	x := execd.Exit{Code: end.Code, OOM: end.OOM, Reason: end.Reason}
	if end.Value != nil {
		x.Value = json.RawMessage(end.Value)
	}
	return x
}

// lost says why a worker has gone without a word: as far as is known the kernel, or the runtime, gave it no more memory.
func (s *session) lost(err error) execd.Exit {
	x := execd.Exit{Code: execd.CodeNotRun, Reason: fmt.Sprintf("the worker ended: %v %s", err, s.said)}
	if w := s.cmd.ProcessState; w != nil && w.ExitCode() == runtimeFailed {
		x.OOM, x.Code = true, 137
	}
	return x
}

// runtimeFailed is the status of a Go program whose runtime has given up.
const runtimeFailed = 2

func (s *session) serve(ctx context.Context, job worker.Job) (worker.End, error) {
	s.enc = gob.NewEncoder(s.conn)
	if err := s.enc.Encode(job); err != nil {
		return worker.End{}, err
	}
	in := worker.NewLimited(s.conn)
	dec := gob.NewDecoder(bufio.NewReaderSize(in, 64<<10))
	for {
		in.Next()
		var c worker.Call
		if err := dec.Decode(&c); err != nil {
			return worker.End{}, err
		}
		switch c.Op {
		case worker.OpEnd:
			return worker.EndOf(c), nil
		case worker.OpStdin:
			go s.readInput(c.ID) // ends when the run does: execd.Func then ends its input
			continue
		}
		if err := s.reply(s.answer(ctx, c)); err != nil {
			return worker.End{}, err
		}
	}
}

func (s *session) reply(r worker.Reply) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.enc.Encode(r)
}

// readInput answers with more standard input, once there is some. The worker asks once at a time; one that was taken over
// and does not, only gets its input in pieces.
func (s *session) readInput(id uint64) {
	b := make([]byte, stdinChunk)
	n, err := s.stdin.Read(b)
	if n == 0 && err == nil {
		err = io.EOF
	}
	if n == 0 && !errors.Is(err, io.EOF) {
		return // the run is being ended
	}
	_ = s.reply(worker.Reply{ID: id, Data: b[:n]}) // the run is being ended when it fails
}

func (s *session) answer(ctx context.Context, c worker.Call) worker.Reply {
	if c.Op == worker.OpWrite {
		stream := execd.Stdout
		if c.Flag {
			stream = execd.Stderr
		}
		s.out.Write(stream, c.Data)
		return worker.Reply{ID: c.ID}
	}
	data, err := s.file(ctx, c)
	if err == nil {
		return worker.Reply{ID: c.ID, Data: data}
	}
	code, message := codeOf(err)
	return worker.Reply{ID: c.ID, Code: code, Message: message}
}
