package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/fusefs"
)

// buildDir holds the program; TestMain removes it.
var buildDir string

// buildCarrel builds the program once.
var buildCarrel = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "carrel-bench-test-")
	if err != nil {
		return "", err
	}
	buildDir = dir
	program := filepath.Join(dir, "carrel")
	cmd := exec.Command("go", "build", "-o", program, "github.com/carrelfs/carrel/cmd/carrel")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build carrel: %w: %s", err, out)
	}
	return program, nil
})

func onCarrel(t *testing.T, workloads ...Workload) (Config, string) {
	t.Helper()
	program, err := buildCarrel()
	if err != nil {
		t.Fatal(err)
	}
	c, log := config(t, workloads...)
	c.Program = program
	c.Targets = []Target{Carrel(program), Disk(c.Work)}
	return c, log
}

// noDaemon requires that no process has to do with a directory. One that has been killed is seen until the kernel has taken
// its memory away.
func noDaemon(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		left := processesOf(t, dir)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still there: %q", left)
		}
	}
}

// processesOf are the command lines in which a directory stands.
func processesOf(t *testing.T, dir string) (lines []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), dir) {
			lines = append(lines, file+": "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return lines
}

// The suite reference runs on a real mount, and an operation costs no more requests than it did. The bounds are what
// was counted when they were written, and a tenth more for what the kernel does by itself.
func TestReferenceOnCarrel(t *testing.T) {
	c, _ := onCarrel(t)
	sizes := SmokeSizes()
	sizes.Files = 200 // so that what a run costs once does not show
	suites, err := Suites([]string{"reference"}, sizes)
	if err != nil {
		t.Fatal(err)
	}
	c.Suites, c.Rounds = suites, 1
	report, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	empty(t, c)
	noDaemon(t, c.Work)
	s := report.Suites[0]
	if u := s.Usage["carrel"]; u.CPU <= 0 || u.PeakRSS < 1<<20 || u.Requests < 1000 {
		t.Errorf("the daemon has used %+v", u)
	}
	bounds := map[string]float64{"create 200 files": 5.5, "create, stat 200 files": 6.6, "create, rm 200 files": 8.5}
	for _, row := range s.Rows {
		for _, cell := range row.Cells {
			if cell.Error != "" || len(cell.Samples) != 1 {
				t.Errorf("%s: %+v", row.Name, cell)
			}
		}
		bound, ok := bounds[row.Name]
		if !ok {
			continue
		}
		delete(bounds, row.Name)
		if got := row.Cells[0].Requests() / float64(row.Ops); got > bound || got < 1 {
			t.Errorf("%s: %.2f requests for each, not 1 to %v", row.Name, got, bound)
		}
	}
	if len(bounds) > 0 {
		t.Errorf("rows are missing: %v", bounds)
	}
}

// Zeros take no chunks, and random bytes are stored once.
func TestStoredOnCarrel(t *testing.T) {
	const n = 4 << 20
	c, _ := onCarrel(t,
		Workload{Name: "zeros", Run: "head -c 4194304 /dev/zero > f"},
		Workload{Name: "random", Data: randomData(n), Run: `cp "$DATA" f; cp f g`},
	)
	c.Rounds = 0
	report, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for i, bounds := range [][2]int64{{0, 256 << 10}, {n, n + n/4}} {
		row := report.Suites[0].Rows[i]
		if got := row.Cells[0].Stored; got == nil || *got < bounds[0] || *got > bounds[1] {
			t.Errorf("%s: %+v bytes stored, want %d to %d", row.Name, row.Cells[0], bounds[0], bounds[1])
		}
	}
}

// A context that ends while a mount is in use leaves no mount, no daemon and no file.
func TestCancelOnCarrel(t *testing.T) {
	write := "echo $$ >> $LOG; while true; do head -c 100000 /dev/urandom > f; done"
	c, log := onCarrel(t, Workload{Name: "write", Run: write})
	ctx, cancel := context.WithCancel(t.Context())
	at := running(t, log)
	go func() {
		<-at
		cancel()
	}()
	if _, err := Run(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
	empty(t, c)
	noDaemon(t, c.Work)
	gone(t, lines(t, log)[0])
}

// The whole way of a request, from the kernel to the tree and back, takes no more memory than it did: what it allocates
// is what the garbage collector has to do. The bounds are what was counted when they were written, and a half more. The
// test serves the mount, and a child works in it.
func TestAllocations(t *testing.T) {
	// Commits in the background allocate too, more or less of them in the time of a request.
	o := casstore.Options{Create: true, CommitEvery: time.Hour}
	s, err := casstore.Open(filepath.Join(t.TempDir(), "store"), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() // its error is looked at below when all went well
	if _, err := s.CreateWorkspace(t.Context(), "w"); err != nil {
		t.Fatal(err)
	}
	w, err := s.OpenWorkspace(t.Context(), "w")
	if err != nil {
		t.Fatal(err)
	}
	server, err := fusefs.Mount(t.TempDir(), w, fusefs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sh, err := newShell(t.TempDir(), environment(t.TempDir(), "", program))
	if err != nil {
		t.Fatal(err)
	}
	const n = 2000
	for _, x := range []struct {
		verb   string
		bounds float64 // allocations for each request
	}{{"create", 10}, {"stat", 2.5}, {"append", 8}, {"unlink", 5}} {
		requests, mallocs := server.Requests(), mallocs()
		if _, err := sh.run(t.Context(), server.Dir(), "step "+x.verb+" "+strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
		each := float64(mallocsSince(mallocs)) / float64(server.Requests()-requests)
		t.Logf("%s: %.1f requests for each file, %.1f allocations for each request", x.verb,
			float64(server.Requests()-requests)/n, each)
		if each > x.bounds {
			t.Errorf("%s: %.1f allocations for each request, more than %v", x.verb, each, x.bounds)
		}
	}
	if err := errors.Join(server.Unmount(t.Context()), sh.close(), w.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

func mallocsSince(before uint64) uint64 { return mallocs() - before }
