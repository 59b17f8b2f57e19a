package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// directories are n plain directories as targets, called d0 and on.
func directories(t *testing.T, n int) (targets []Target) {
	t.Helper()
	for i := range n {
		d, err := Directory(fmt.Sprint("d", i), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, d)
	}
	return targets
}

// config is a benchmark of some workloads on two directories. What scripts write to $LOG is in the file log.
func config(t *testing.T, workloads ...Workload) (c Config, log string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log = filepath.Join(t.TempDir(), "log")
	for i := range workloads {
		for _, script := range []*string{&workloads[i].Setup, &workloads[i].Run, &workloads[i].Check} {
			*script = strings.ReplaceAll(*script, "$LOG", log)
		}
	}
	return Config{
		Program: program, Version: "test", Work: t.TempDir(), Targets: directories(t, 2), Rounds: 3, Seed: 1,
		Suites: []Suite{{Name: "fake", Workloads: workloads}},
	}, log
}

// empty requires that a benchmark has left nothing in its directories.
func empty(t *testing.T, c Config) {
	t.Helper()
	dirs := []string{c.Work}
	for _, target := range c.Targets {
		if d, ok := target.(*directory); ok && d.parent != "" {
			dirs = append(dirs, d.parent)
		}
	}
	for _, dir := range dirs {
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 0 {
			t.Errorf("%s has %v left, %v", dir, left, err)
		}
	}
	entries, err := mountEntries()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.dir, c.Work) {
			t.Errorf("%s is still mounted", e.dir)
		}
	}
}

func lines(t *testing.T, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}

// Every run has a fresh directory, is set up, and is run once in the warm-up and once in each round.
func TestRun(t *testing.T) {
	c, log := config(t, Workload{
		Name: "touch", Setup: `[[ -z $(ls -A) ]]; touch before; echo setup >> $LOG`,
		Run: `[[ $(ls) == before ]]; touch after; echo run >> $LOG`, Check: `[[ -e after ]]; echo check >> $LOG`, Ops: 1,
	})
	report, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	empty(t, c)
	counts := map[string]int{}
	for _, line := range lines(t, log) {
		counts[line]++
	}
	if want := map[string]int{"setup": 8, "run": 8, "check": 2}; fmt.Sprint(counts) != fmt.Sprint(want) {
		t.Errorf("scripts were run %v times, want %v", counts, want)
	}
	row := report.Suites[0].Rows[0]
	for _, cell := range row.Cells {
		if len(cell.Samples) != 3 || cell.Error != "" || cell.Summary == nil || cell.Summary.Min <= 0 || cell.Stored == nil {
			t.Errorf("cell %+v", cell)
		}
	}
	if q := row.Cells[0].Ratio("d1"); q == nil || q.Value <= 0 || q.Low > q.High {
		t.Errorf("ratio %+v", q)
	}
	if report.Stopped || report.Failed() != 0 || len(report.Targets) != 2 || report.Noise.Pace.Median <= 0 {
		t.Errorf("report %+v", report)
	}
}

// The order of the targets changes from round to round, and is the same for the same seed.
func TestShuffle(t *testing.T) {
	orders := func(seed uint64) []string {
		c, log := config(t, Workload{Name: "where", Run: `basename "$(dirname "$(dirname "$PWD")")" >> $LOG`})
		c.Seed, c.Rounds = seed, 12
		if _, err := Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		first := lines(t, log)[0]
		var order []string
		for _, line := range lines(t, log) {
			order = append(order, map[bool]string{true: "a", false: "b"}[line == first])
		}
		return order
	}
	one, again, other := orders(7), orders(7), orders(8)
	if !slices.Equal(one, again) {
		t.Errorf("one seed, two orders:\n%v\n%v", one, again)
	}
	if slices.Equal(one, other) {
		t.Errorf("two seeds, one order: %v", one)
	}
	for i := 0; i < len(one); i += 2 {
		if one[i] == one[i+1] {
			t.Errorf("round %d has %v twice", i/2, one[i])
		}
	}
}

// What goes wrong on one target is said, and the others go on.
func TestFailures(t *testing.T) {
	c, _ := config(t,
		Workload{Name: "broken", Run: "echo reasons >&2; exit 7"},
		Workload{Name: "undone", Run: "true", Check: "false"},
		Workload{Name: "unready", Setup: "false", Run: "true"},
		Workload{Name: "needy", Run: "true", Needs: []string{"a program that is nowhere"}},
		Workload{Name: "large", Run: "true", Space: 1 << 60},
		Workload{Name: "fine", Run: "true"},
	)
	report, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	empty(t, c)
	rows := report.Suites[0].Rows
	for i, want := range []string{"exit status 7: reasons", "the work was not done", "set up: exit status 1"} {
		for _, cell := range rows[i].Cells {
			if !strings.Contains(cell.Error, want) || len(cell.Samples) != 0 {
				t.Errorf("%s: cell %+v, want the error %q", rows[i].Name, cell, want)
			}
		}
	}
	if rows[3].Skipped == "" || rows[4].Cells[0].Skipped == "" || len(rows[4].Cells[0].Samples) != 0 {
		t.Errorf("rows were not skipped: %+v", rows[3:5])
	}
	if len(rows[5].Cells[1].Samples) != 3 {
		t.Errorf("the last row: %+v", rows[5])
	}
	if n := report.Failed(); n != 6 {
		t.Errorf("%d cells failed, not 6", n)
	}
}

// $DATA is new in each run.
func TestData(t *testing.T) {
	c, log := config(t, Workload{Name: "sum", Data: randomData(1000), Run: `sha256sum < "$DATA" | cut -c 1-64 >> $LOG`})
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	sums := lines(t, log)
	slices.Sort(sums)
	if n := len(slices.Compact(sums)); n != 8 {
		t.Errorf("%d kinds of data in 8 runs", n)
	}
	broken := errors.New("no data")
	c, _ = config(t, Workload{Name: "none", Run: "true", Data: func(io.Writer, *rand.ChaCha8) error { return broken }})
	report, err := Run(t.Context(), c)
	if err != nil || !strings.Contains(report.Suites[0].Rows[0].Cells[0].Error, "no data") {
		t.Errorf("%+v, %v", report.Suites[0].Rows[0], err)
	}
}

// running is an event that a script has got to a place.
func running(t *testing.T, log string) <-chan struct{} {
	t.Helper()
	ch := make(chan struct{})
	ctx := t.Context()
	done := make(chan struct{})
	t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if b, err := os.ReadFile(log); err == nil && strings.HasSuffix(string(b), "\n") {
				close(ch)
				return
			}
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	return ch
}

// gone waits until a process has ended. One that nobody waits for is a zombie until its new parent does.
func gone(t *testing.T, pid string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		b, err := os.ReadFile("/proc/" + pid + "/stat")
		_, state, _ := strings.Cut(string(b), ") ")
		if err != nil || strings.HasPrefix(state, "Z") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %s is still there: %s", pid, b)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A context that ends while a script runs ends the script with all it has started, and nothing is left.
func TestCancel(t *testing.T) {
	c, log := config(t, Workload{Name: "wait", Run: "sleep 1000 & echo $$ $! >> $LOG; wait"})
	ctx, cancel := context.WithCancel(t.Context())
	at := running(t, log)
	go func() {
		<-at
		cancel()
	}()
	start := time.Now()
	report, err := Run(ctx, c)
	if !errors.Is(err, context.Canceled) || report == nil || !report.Stopped {
		t.Errorf("Run = %+v, %v", report, err)
	}
	if took := time.Since(start); took > 60*time.Second {
		t.Errorf("it took %v", took)
	}
	empty(t, c)
	for _, pid := range lines(t, log) {
		gone(t, pid)
	}
}

// A target that cannot be opened is an error, and those that were open are closed.
func TestOpenFails(t *testing.T) {
	c, _ := config(t, Workload{Name: "never", Run: "true"})
	c.Targets = append(c.Targets, Peer("broken", "echo reasons >&2; exit 3"))
	_, err := Run(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), "broken") || !strings.Contains(err.Error(), "reasons") {
		t.Errorf("Run: %v", err)
	}
	empty(t, c)
}

// A peer may stay or go to the background; both are unmounted.
func TestPeers(t *testing.T) {
	c, log := config(t, Workload{Name: "where", Run: "stat --file-system --format %T . >> $LOG"})
	c.Targets = []Target{
		Tmpfs(), Disk(c.Work), Peer("background", `mount -t tmpfs none "$DIR"`),
		Peer("stays", `mount -t tmpfs none "$DIR"; echo $$ >> `+filepath.Join(filepath.Dir(log), "pid")+`; sleep 1000`),
	}
	report, err := Run(t.Context(), c)
	if err != nil || report.Failed() > 0 {
		t.Fatal(err, report)
	}
	empty(t, c)
	onTmpfs := 0
	for _, line := range lines(t, log) {
		if line == "tmpfs" {
			onTmpfs++
		}
	}
	if onTmpfs < 12 {
		t.Errorf("%d runs were on a tmpfs, not 12", onTmpfs)
	}
	gone(t, lines(t, filepath.Join(filepath.Dir(log), "pid"))[0])
	if d := report.Targets[2]; d.Kind != "peer" || d.Filesystem != "tmpfs" || d.Command == "" {
		t.Errorf("the peer is described as %+v", d)
	}
}

// Every workload does its work, with tiny sizes, on a tmpfs. What is not installed is skipped with a reason.
func TestAllSuites(t *testing.T) {
	suites, err := Suites([]string{"all"}, SmokeSizes())
	if err != nil {
		t.Fatal(err)
	}
	c, _ := config(t)
	c.Suites, c.Rounds, c.Targets = suites, 0, []Target{Tmpfs()}
	report, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	empty(t, c)
	if len(report.Suites) != len(makers) {
		t.Fatalf("%d suites, not %d", len(report.Suites), len(makers))
	}
	for _, s := range report.Suites {
		for _, row := range s.Rows {
			if row.Skipped != "" && !strings.Contains(row.Skipped, "is not installed") {
				t.Errorf("%s: %s was skipped: %s", s.Name, row.Name, row.Skipped)
			}
			for _, cell := range row.Cells {
				if cell.Error != "" || cell.Skipped != "" || cell.Stored == nil {
					t.Errorf("%s: %s: %s%s", s.Name, row.Name, cell.Error, cell.Skipped)
				}
			}
		}
	}
}

func TestSuites(t *testing.T) {
	suites, err := Suites([]string{"store", "reference"}, FullSizes())
	if err != nil || len(suites) != 2 || suites[0].Name != "reference" {
		t.Errorf("Suites = %d, %v", len(suites), err)
	}
	_, err = Suites([]string{"reference", "opera"}, FullSizes())
	if err == nil || !strings.Contains(err.Error(), "opera") {
		t.Errorf("a suite that is none: %v", err)
	}
	names := map[string]bool{}
	all, err := Suites([]string{"all"}, FullSizes())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		for _, w := range s.Workloads {
			if names[s.Name+w.Name] {
				t.Errorf("%s has two rows %q", s.Name, w.Name)
			}
			names[s.Name+w.Name] = true
		}
	}
}

func TestOnlyRows(t *testing.T) {
	all, err := Suites([]string{"all"}, FullSizes())
	if err != nil {
		t.Fatal(err)
	}
	some, err := OnlyRows(all, "^rm -rf|SQLite")
	if err != nil || len(some) != 2 || some[0].Name != "shell" || len(some[0].Workloads) != 1 || len(some[1].Workloads) != 3 {
		t.Errorf("rm -rf and SQLite: %+v, %v", some, err)
	}
	if same, err := OnlyRows(all, ""); err != nil || len(same) != len(all) {
		t.Errorf("no expression: %d suites, %v", len(same), err)
	}
	for _, expression := range []string{"opera", "("} {
		if _, err := OnlyRows(all, expression); err == nil {
			t.Errorf("%q matches", expression)
		}
	}
}

func TestMountinfo(t *testing.T) {
	entries := parseMounts("36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 /dev/root\\011x rw\nnonsense\n")
	if want := []mountEntry{{"/mnt 2", "ext3", "/dev/root\tx"}}; !slices.Equal(entries, want) {
		t.Errorf("entries %q, want %q", entries, want)
	}
	var st unix.Statfs_t
	if err := unix.Statfs("/proc", &st); err != nil || filesystemOf("/proc/self") != "proc" {
		t.Errorf("/proc/self is on %s, %v", filesystemOf("/proc/self"), err)
	}
}

func TestFioTime(t *testing.T) {
	const report = `{"jobs":[{"read":{"total_ios":0,"lat_ns":{"mean":0}},"write":{"total_ios":8,"lat_ns":{"mean":1000}},` +
		`"sync":{"total_ios":4,"lat_ns":{"mean":500}}}]}`
	if d, err := fioTime([]byte(report), 2); d != 5*time.Microsecond || err != nil {
		t.Errorf("fioTime = %v, %v", d, err)
	}
	for _, bad := range []string{"", "{}", `{"jobs":[{}]}`} {
		if _, err := fioTime([]byte(bad), 1); err == nil {
			t.Errorf("%q has a time", bad)
		}
	}
}

func TestBusy(t *testing.T) {
	// user nice system idle iowait irq softirq steal guest guest_nice
	if got := busyOf(strings.Fields("cpu 1 2 3 1000 1000 4 5 6 100 100")); got != 21*10e6 {
		t.Errorf("busy for %d ns", got)
	}
}
