package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// exercise is one run of a workload on a target, from a fresh directory to its removal:
//
//	data, mkdir, setup, [settle, drop caches,]  RUN  [check, stored,] rm -rf, settle
//
// Only RUN is timed. To settle at the end makes every target pay for its own writing, in nobody's time.
type exercise struct {
	*runner
	work   Workload
	place  place
	dir    string
	stored *int64 // after a warm-up
}

func (x *exercise) run(ctx context.Context, warmUp bool) (s Sample, err error) {
	x.runs++
	x.dir = fmt.Sprintf("%s/run%d", x.place.dir, x.runs)
	if err := x.prepare(ctx); err != nil {
		return s, fmt.Errorf("set up: %w", err)
	}
	if warmUp {
		s, err = x.measure(ctx)
	} else {
		s, err = x.timed(ctx)
	}
	if err == nil && warmUp && x.work.Check != "" {
		if _, checkErr := x.shell.run(ctx, x.dir, x.work.Check); checkErr != nil {
			err = fmt.Errorf("the work was not done: %w", checkErr)
		}
	}
	return s, errors.Join(err, x.cleanUp(ctx))
}

// prepare brings the target to where the timer may start.
func (x *exercise) prepare(ctx context.Context) error {
	if err := x.makeData(); err != nil {
		return err
	}
	if _, err := x.shell.run(ctx, x.place.dir, fmt.Sprintf("mkdir run%d", x.runs)); err != nil {
		return err
	}
	if x.work.Setup != "" {
		if _, err := x.shell.run(ctx, x.dir, x.work.Setup); err != nil {
			return err
		}
	}
	if !x.work.Cold {
		return nil
	}
	if err := x.settle(ctx); err != nil || x.onlyTries() {
		return err
	}
	return dropCaches()
}

// onlyTries reports whether the times mean nothing. Then the kernel's caches are left alone: they are everybody's on the
// machine.
func (r *runner) onlyTries() bool { return r.Smoke || r.Rounds == 0 }

func (x *exercise) makeData() (err error) {
	if x.work.Data == nil {
		return nil
	}
	f, err := os.Create(x.dataFile())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	return errors.Join(x.work.Data(w, x.random), w.Flush())
}

// timed runs and times.
func (x *exercise) timed(ctx context.Context) (s Sample, err error) {
	before, _, err := x.place.Usage(ctx)
	if err != nil {
		return s, err
	}
	o, err := x.shell.run(ctx, x.dir, x.work.Run)
	if err != nil {
		return s, err
	}
	after, _, err := x.place.Usage(ctx)
	if err != nil {
		return s, err
	}
	if x.work.Time != nil {
		if o.wall, err = x.work.Time(o.stdout); err != nil {
			return s, err
		}
	}
	return Sample{Time: int64(o.wall), CPU: after.CPU - before.CPU, Requests: after.Requests - before.Requests}, nil
}

// measure runs for the warm-up, and sees by how much the target grows.
func (x *exercise) measure(ctx context.Context) (s Sample, err error) {
	before, err := x.size(ctx)
	if err != nil {
		return s, err
	}
	if s, err = x.timed(ctx); err != nil {
		return s, err
	}
	if err := x.settle(ctx); err != nil {
		return s, err
	}
	after, err := x.size(ctx)
	grown := max(0, after-before)
	x.stored = &grown
	return s, err
}

// size returns how many bytes the target keeps: all of them, or those of the run's directory.
func (x *exercise) size(ctx context.Context) (int64, error) {
	n, ok, err := x.place.Stored(ctx)
	if ok || err != nil {
		return n, err
	}
	o, err := x.shell.run(ctx, x.dir, "du --summarize --block-size=1 . | cut -f 1")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(o.stdout)), 10, 64)
}

func (x *exercise) settle(ctx context.Context) error {
	ok, err := x.place.Settle(ctx)
	if ok || err != nil {
		return err
	}
	_, err = x.shell.run(ctx, x.place.dir, "sync --file-system .")
	return err
}

// cleanUp removes the run's directory. After a cancelled run nothing is gained by it: the whole target goes.
func (x *exercise) cleanUp(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	if _, err := x.shell.run(ctx, x.place.dir, fmt.Sprintf("rm -rf run%d", x.runs)); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return x.settle(ctx)
}

// dropCaches makes the kernel forget clean pages, names and inodes.
func dropCaches() error { return os.WriteFile(dropFile, []byte("3\n"), 0) }

const dropFile = "/proc/sys/vm/drop_caches"

// canDrop reports whether this process may drop caches. Opening the file is not dropping.
func canDrop() bool {
	f, err := os.OpenFile(dropFile, os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	_ = f.Close() // nothing was written
	return true
}

// missing says what a workload needs that is not here, or nothing.
func (w *Workload) missing() string {
	for _, program := range w.Needs {
		if _, err := exec.LookPath(program); err != nil {
			return program + " is not installed"
		}
	}
	if w.Cold && !canDrop() {
		return "only root can drop the kernel's caches"
	}
	return ""
}

// tooSmall says what a target has not enough of for a workload, or nothing.
func (r *runner) tooSmall(ctx context.Context, w Workload, p place) string {
	if w.Space == 0 && w.Inodes == 0 {
		return ""
	}
	o, err := r.shell.run(ctx, p.dir, "stat --file-system --format '%a %S %d' .")
	if err != nil {
		return err.Error()
	}
	var blocks, size, inodes int64
	if _, err := fmt.Sscan(string(o.stdout), &blocks, &size, &inodes); err != nil {
		return fmt.Sprintf("stat says %q", o.stdout)
	}
	switch {
	case blocks*size < w.Space+w.Space/2:
		return fmt.Sprintf("only %d MiB are free", blocks*size>>20)
	case inodes > 0 && inodes < w.Inodes+w.Inodes/2: // some filesystems do not count them
		return fmt.Sprintf("only %d inodes are free", inodes)
	}
	return ""
}
