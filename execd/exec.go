package execd

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Exec is one exec. Its methods are safe for concurrent use.
type Exec struct {
	registry *Registry
	dir      string
	digest   [sha256.Size]byte
	created  time.Time
	why      string // its backend was chosen
	log      *Log
	ready    chan struct{} // closed when it was started, or could not be
	done     chan struct{} // closed when it has ended and its result is there

	feeds     feeds
	workspace Workspace // used by whoever starts it, and then by run
	release   func()    // lets the daemon end

	mu       sync.Mutex
	spec     Spec // without what may be secret
	state    State
	startErr error // to be read when ready is closed
	process  Process
	before   vfs.Rev
	timedOut bool
	result   *Result
}

// Info is what is known of an exec now.
type Info struct {
	Spec    Spec // without environment and input
	State   State
	Created time.Time
	Last    uint64  // number of the last event so far
	Output  uint64  // bytes that it wrote so far
	Result  *Result // once it has ended
}

// ID returns the exec's id.
func (e *Exec) ID() string { return e.spec.ID }

// Info says how the exec is.
func (e *Exec) Info() Info {
	e.mu.Lock()
	in := Info{Spec: e.spec, State: e.state, Created: e.created, Result: e.result}
	e.mu.Unlock()
	in.Last, in.Output, _ = e.log.sizes()
	return in
}

// Done is closed when the exec has ended and its Result is there.
func (e *Exec) Done() <-chan struct{} { return e.done }

// Wait returns the result once there is one: ErrInterrupted when ctx ended before.
func (e *Exec) Wait(ctx context.Context) (Result, error) {
	select {
	case <-e.done:
		e.mu.Lock()
		defer e.mu.Unlock()
		return *e.result, nil
	case <-ctx.Done():
		return Result{}, fmt.Errorf("wait for exec %s: %w", e.ID(), vfs.ErrInterrupted)
	}
}

// Attach returns a reader of its events, see [Log.Attach].
func (e *Exec) Attach(after uint64, hold bool) *Reader { return e.log.Attach(after, hold) }

// Input gives the exec standard input and returns when it was taken. ErrClosed when it takes none any more.
func (e *Exec) Input(ctx context.Context, p []byte) error {
	process, err := e.running("input")
	if err == nil {
		_, err = process.Input(ctx, p)
	}
	return err
}

// CloseInput ends the exec's standard input.
func (e *Exec) CloseInput() error {
	process, err := e.running("end of input")
	if err != nil {
		return err
	}
	return process.CloseInput()
}

// Resize changes the size of the exec's terminal.
func (e *Exec) Resize(s Size) error {
	process, err := e.running("resize")
	if err != nil {
		return err
	}
	return process.Resize(s)
}

// Signal sends a signal, by its number; SIGKILL ends all that the exec has started. ErrClosed once it has ended.
func (e *Exec) Signal(number int) error {
	if number < 1 || number > maxSignal {
		return fmt.Errorf("signal %d: %w", number, vfs.ErrInvalid)
	}
	process, err := e.running("signal")
	if err != nil {
		return err
	}
	if number == int(unix.SIGKILL) {
		e.log.release() // what a reader does not take must not keep it from ending
	}
	return process.Signal(number)
}

func (e *Exec) running(what string) (Process, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != StateRunning {
		return nil, fmt.Errorf("%s to exec %s, which is not running: %w", what, e.spec.ID, vfs.ErrClosed)
	}
	return e.process, nil
}

// start does what is to be done once for an exec that was claimed.
func (e *Exec) start(ctx context.Context, b Backend, spec Spec) error {
	err := e.begin(ctx, b, spec)
	if err != nil {
		err = fmt.Errorf("start exec %s: %w", spec.ID, err)
		err = errors.Join(err, e.undo())
	}
	e.mu.Lock()
	e.startErr = err
	if err == nil {
		e.state = StateRunning
	}
	e.mu.Unlock()
	if err != nil {
		e.registry.drop(e)
	}
	close(e.ready)
	return err
}

func (e *Exec) begin(ctx context.Context, b Backend, spec Spec) (err error) {
	if e.release, err = e.registry.config.Keep(); err != nil {
		return err
	}
	if e.workspace, err = e.registry.config.Open(ctx, spec.Workspace); err != nil {
		return err
	}
	if e.before, err = e.workspace.Before(ctx); err != nil {
		return fmt.Errorf("barrier before: %w", err)
	}
	if err = makeDir(e.dir); err != nil {
		return err
	}
	// Written first: whatever breaks from here on, it is not started twice.
	if err = e.write(); err != nil {
		return err
	}
	process, err := b.Start(ctx, Job{Spec: spec, Tree: e.workspace.Tree()}, e.log)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.process = process
	e.mu.Unlock()
	return nil
}

// undo takes back what begin did before it failed.
func (e *Exec) undo() (err error) {
	err = e.log.finish()
	if e.workspace != nil {
		err = errors.Join(err, e.workspace.Close())
	}
	if e.release != nil {
		e.release()
	}
	return errors.Join(err, os.RemoveAll(e.dir))
}

// run follows an exec that was started to its end.
func (e *Exec) run(timeout time.Duration) {
	if timeout > 0 {
		stop := time.AfterFunc(timeout, e.expire)
		defer stop.Stop()
	}
	e.log.prepare() // while the process gets going
	x := e.process.Wait()
	e.mu.Lock()
	timedOut := e.timedOut
	e.mu.Unlock()
	r := resultOf(x, timedOut)
	e.settle(&r)
	e.finish(r)
}

// expire ends the exec because its time is over.
func (e *Exec) expire() {
	e.mu.Lock()
	e.timedOut = e.state == StateRunning
	e.mu.Unlock()
	if err := e.Signal(int(unix.SIGKILL)); err != nil && !errors.Is(err, vfs.ErrClosed) {
		e.registry.config.Log.Error("kill an exec whose time is over", "id", e.spec.ID, "err", err)
	}
}

// settle does the barrier out.
func (e *Exec) settle(r *Result) {
	ctx, cancel := context.WithTimeout(context.Background(), barrierPatience)
	defer cancel()
	var err error
	r.Before = e.before
	if r.After, err = e.workspace.After(ctx); err != nil {
		r.After, r.Pending = 0, err.Error()
		return
	}
	if c, err := e.workspace.Changes(ctx, r.Before, r.After); err == nil {
		r.Changes = &c
	}
}

// finish makes the end known.
func (e *Exec) finish(r Result) {
	log := e.registry.config.Log.With("id", e.spec.ID)
	r.Started, r.Ended, r.Backend, r.Why = e.created, time.Now(), e.spec.Backend, e.why
	_, r.Output, r.Lost = e.log.sizes()
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // a value that is not JSON is a backend's bug
	}
	if err := e.log.end(b); err != nil {
		log.Error("end the log of an exec", "err", err)
	}
	if err := e.workspace.Close(); err != nil {
		log.Error("close the workspace of an exec", "err", err)
	}
	e.mu.Lock()
	e.state, e.result, e.process = StateExited, &r, nil
	e.mu.Unlock()
	if err := e.write(); err != nil {
		log.Error("write down how an exec ended", "err", err)
	}
	e.registry.ended()
	close(e.done)
	e.release()
	prepareDir(e.registry.config.Dir)
}

// write writes the state down.
func (e *Exec) write() error {
	last, offset, _ := e.log.sizes()
	e.mu.Lock()
	r := record{
		Spec: e.spec, Digest: e.digest[:], State: e.state, Created: e.created, Before: e.before, Last: last, Offset: offset,
		Result: e.result,
	}
	e.mu.Unlock()
	return writeState(e.dir, r, e.log.seal)
}
