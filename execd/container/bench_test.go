package container

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/carrelfs/carrel/execd"
)

// From start to exit of true: medians of rounds in which everything takes its turn, in microseconds. First is the first
// exec of a workspace once another one has had execs, cold the very first; bwrap and crun are there where the machine has them and they
// work, crun with a container of ours.
//
//	go test ./execd/container -run '^$' -bench Start -benchtime 200x
func BenchmarkStart(b *testing.B) {
	bwrap := []string{"bwrap", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
		"--symlink", "usr/bin", "/bin", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--unshare-all", "true"}
	later := newDesk(b, nil)
	benchStart(b, later, "ws")
	first := newDesk(b, nil)
	bundles := filepath.Join(b.TempDir(), "bundles")
	runtimes := newDesk(b, func(c *Config) { c.Bundles = bundles })
	contained := execd.Spec{Workspace: "ws", Runtime: "crun", Args: []string{"true"}}
	p, err := runtimes.Start(b.Context(), execd.Job{Spec: contained}, newLog())
	crun := err == nil && p.Wait().Code == 0
	n := 0
	took := map[string][]time.Duration{}
	turn := func(name string, f func()) {
		start := time.Now()
		f()
		took[name] = append(took[name], time.Since(start))
	}
	for b.Loop() {
		turn("fork+exec", func() { benchCommand(b, "true") })
		if _, err := exec.LookPath(bwrap[0]); err == nil {
			turn("bwrap", func() { benchCommand(b, bwrap...) })
		}
		if crun {
			turn("crun", func() { benchSpec(b, runtimes, contained) })
		}
		turn("later", func() { benchStart(b, later, "ws") })
		n++
		turn("cold", func() { benchStart(b, first, fmt.Sprint(n, " cold")) })
		first.awaitSpare()
		time.Sleep(settle)
		turn("first", func() { benchStart(b, first, fmt.Sprint(n)) })
		first.endAll()
	}
	for name, all := range took {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds()), name+"-µs")
	}
}

// settle is time for what is prepared to get ready, which nobody is told of.
const settle = 100 * time.Millisecond

// awaitSpare waits until the next container is ready.
func (d *desk) awaitSpare() *cell {
	for {
		d.mu.Lock()
		c := d.spare.cell
		d.mu.Unlock()
		if c != nil {
			return c
		}
		time.Sleep(time.Millisecond) // another process works on it
	}
}

// endAll ends all containers, the spare too, once nobody is in them: the end of an exec is known a little before it has left.
func (d *desk) endAll() {
	d.awaitSpare()
	d.mu.Lock()
	spare := d.spare.cell
	d.spare.cell = nil
	d.mu.Unlock()
	d.end(spare)
	for len(d.cells) > 0 {
		d.mu.Lock()
		var idle *cell
		for _, c := range d.cells {
			if c.uses == 0 {
				idle = c
			}
		}
		d.mu.Unlock()
		if idle != nil {
			idle.idle.Stop()
			d.expire(idle)
		}
	}
}

func benchCommand(b *testing.B, args ...string) {
	if err := exec.Command(args[0], args[1:]...).Run(); err != nil {
		b.Fatal(err)
	}
}

func benchStart(b *testing.B, d *desk, workspace string) {
	benchSpec(b, d, execd.Spec{Workspace: workspace, Args: []string{"true"}})
}

func benchSpec(b *testing.B, d *desk, s execd.Spec) {
	p, err := d.Start(context.Background(), execd.Job{Spec: s}, newLog())
	if err != nil {
		b.Fatal(err)
	}
	if x := p.Wait(); x.Code != 0 {
		b.Fatal(x)
	}
}
