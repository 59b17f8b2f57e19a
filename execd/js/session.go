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

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/js/worker"
)

// stdinChunk is how much of standard input is given at once.
const stdinChunk = 64 << 10

// session is one run, seen from the daemon: it answers what the worker asks.
type session struct {
	*process
	own    func(func()) // does something later, before the backend has closed
	fs     treepath.FS
	stdin  io.Reader
	out    execd.Output
	memory uint64
	open   openFiles

	mu  sync.Mutex // guards enc
	enc *gob.Encoder
}

// errNotBegun is for a worker that has ended before it began with its job: another may have that.
var errNotBegun = errors.New("the worker ended before it began")

// runIn sends the job to a worker and serves that to its end. One that has died while it waited is replaced by a new one.
// When ctx ends first, the worker is killed.
func (s *session) runIn(ctx context.Context, p *process, job worker.Job) execd.Exit {
	defer s.open.closeAll()
	for first := true; ; first = false {
		s.process = p
		end, err := s.run(ctx, job)
		switch {
		case err == nil:
			return exitOf(end)
		case !first || !errors.Is(err, errNotBegun) || ctx.Err() != nil:
			return s.lost(err)
		}
		if p, err = startProcess(ctx, s.memory); err != nil {
			return execd.Exit{Code: execd.CodeNotRun, Reason: err.Error()}
		}
	}
}

func exitOf(end worker.End) execd.Exit {
	x := execd.Exit{Code: end.Code, OOM: end.OOM, Reason: end.Reason}
	if end.Value != nil {
		x.Value = json.RawMessage(end.Value)
	}
	return x
}

func (s *session) run(ctx context.Context, job worker.Job) (worker.End, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, s.kill)
	end, err := s.serve(ctx, job)
	stop()
	if err == nil {
		s.own(s.kill) // it takes a millisecond, and does nothing any more
	} else {
		s.kill()
	}
	return end, err
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
	in := worker.NewLimited(s.conn)
	dec := gob.NewDecoder(bufio.NewReaderSize(in, 64<<10))
	if err := s.begin(job, dec); err != nil {
		return worker.End{}, fmt.Errorf("%w: %w", errNotBegun, err)
	}
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

// begin sends the job, and returns when the worker has it.
func (s *session) begin(job worker.Job, dec *gob.Decoder) error {
	if err := s.enc.Encode(job); err != nil {
		return err
	}
	var c worker.Call
	if err := dec.Decode(&c); err != nil {
		return err
	}
	if c.Op != worker.OpBegun {
		return fmt.Errorf("it said %q: %w", c.Op, vfs.ErrInvalid)
	}
	return nil
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
