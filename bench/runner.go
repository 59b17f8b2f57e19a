package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// workPrefix begins the names of all directories that a benchmark makes outside of its own.
const workPrefix = "carrel-bench-"

// Config says what a benchmark does.
type Config struct {
	// Program is the file of this program, which steps are run with; its main must lead to step.Main.
	Program string
	Version string // of it, for the report
	// Work is a directory on the local disk. Everything is in a directory of its own in it, which is gone at the end.
	Work string
	// Targets are compared with the first.
	Targets []Target
	Suites  []Suite
	Rounds  int  // after the warm-up; with none it is only tried whether everything works
	Smoke   bool // noted in the report
	Seed    uint64
	// Progress, if set, is called before each run, from Run's goroutine.
	Progress func(Progress)
	// Done, if set, is called with each row when it is finished.
	Done func(suite string, r Row)
}

// Progress says how far a benchmark is, in runs.
type Progress struct {
	Done, Total int
	Suite, Row  string
	Target      string
}

// runner is a benchmark that runs.
type runner struct {
	Config
	home   string // its own directory in Work
	shell  *shell
	random *rand.ChaCha8
	pacer  *pacer
	runs   int // so far, for the names of their directories
	at     Progress
}

// place is a target that is open.
type place struct {
	Target
	dir string
}

// Run runs the suites. When ctx ends it stops, and returns what is finished with the error. In every case it has
// unmounted, ended and removed what it made when it returns, unless the error says otherwise.
func Run(ctx context.Context, c Config) (report *Report, err error) {
	if len(c.Targets) == 0 {
		return nil, errors.New("bench: no target")
	}
	r, err := newRunner(c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	report = r.newReport()
	for _, s := range c.Suites {
		var sr SuiteReport
		sr, err = r.suite(ctx, s, report)
		report.Suites = append(report.Suites, sr)
		if err != nil {
			break
		}
	}
	report.Stopped = ctx.Err() != nil
	report.Took = int64(time.Since(report.Started))
	report.Noise = r.pacer.judge()
	return report, err
}

func newRunner(c Config) (*runner, error) {
	work, err := filepath.Abs(c.Work)
	if err == nil {
		work, err = filepath.EvalSymlinks(work)
	}
	if err != nil {
		return nil, err
	}
	r := &runner{Config: c, pacer: newPacer()}
	var seed [32]byte
	for i := range 8 {
		seed[i] = byte(c.Seed >> (8 * i))
	}
	r.random = rand.NewChaCha8(seed)
	if r.home, err = os.MkdirTemp(work, workPrefix); err != nil {
		return nil, err
	}
	if err := r.prepare(); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// prepare makes what the scripts find.
func (r *runner) prepare() error {
	scratch := filepath.Join(r.home, "scratch")
	if err := errors.Join(os.Mkdir(scratch, 0o755), os.Mkdir(filepath.Join(scratch, "tmp"), 0o755)); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(scratch, ".gitconfig"), []byte(gitConfig), 0o644); err != nil {
		return err
	}
	var err error
	r.shell, err = newShell(r.home, environment(scratch, r.dataFile(), r.Program))
	return err
}

func (r *runner) dataFile() string { return filepath.Join(r.home, "data") }

// gitConfig keeps git from work in the background, which would go on after the timer.
const gitConfig = `[user]
	name = Carrel
	email = bench@example.com
[gc]
	auto = 0
[maintenance]
	auto = false
[init]
	defaultBranch = main
[safe]
	directory = *
[protocol "file"]
	allow = always
`

// environment is all that scripts see of this process's: nothing of the user's settings may make one machine's rows
// unlike another's.
func environment(scratch, data, program string) []string {
	return []string{
		// Of a program that was built with the race detector, each step sleeps for a second at its end unless this says no.
		"GORACE=" + os.Getenv("GORACE"),
		"PATH=" + os.Getenv("PATH"), "HOME=" + scratch, "TMPDIR=" + filepath.Join(scratch, "tmp"), "LC_ALL=C", "TZ=UTC",
		"SCRATCH=" + scratch, "DATA=" + data, "CARREL_BENCH_PROGRAM=" + program,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "NO_UPDATE_NOTIFIER=1", "npm_config_update_notifier=false",
		"GOFLAGS=-mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local", "GOCACHE=" + filepath.Join(scratch, "gocache"),
	}
}

func (r *runner) close() error {
	var errs []error
	if r.shell != nil {
		errs = append(errs, r.shell.close())
	}
	return errors.Join(append(errs, os.RemoveAll(r.home))...)
}

func (r *runner) newReport() *Report {
	return &Report{
		Format: reportFormat, Version: r.Version, Started: time.Now().Truncate(time.Second), Seed: r.Seed, Rounds: r.Rounds,
		Smoke: r.Smoke, Machine: thisMachine(),
	}
}

// suite opens fresh targets, so that no suite meets what another has left, runs the rows and closes them.
func (r *runner) suite(ctx context.Context, s Suite, report *Report) (sr SuiteReport, err error) {
	sr = SuiteReport{Name: s.Name, About: s.About, Usage: map[string]Usage{}}
	targets := r.Targets
	if s.Alone {
		targets = []Target{Disk(r.home)}
	}
	base, err := os.MkdirTemp(r.home, "suite")
	if err != nil {
		return sr, err
	}
	places, err := openAll(ctx, targets, base)
	// With what is open even when a mount could not be taken away: then the directory is not removed, nor what is in it.
	defer func() {
		closed := closeAll(places)
		err = errors.Join(err, closed)
		if closed == nil {
			err = errors.Join(err, os.RemoveAll(base))
		}
	}()
	if err != nil {
		return sr, err
	}
	report.describe(places, s.Alone)
	r.at = Progress{Suite: s.Name, Total: len(s.Workloads) * len(places) * (r.Rounds + 1)}
	for i, w := range s.Workloads {
		r.at.Done, r.at.Row = i*len(places)*(r.Rounds+1), w.Name
		row, err := r.row(ctx, w, places)
		if err != nil {
			return sr, err
		}
		sr.Rows = append(sr.Rows, row)
		if r.Done != nil {
			r.Done(s.Name, row)
		}
	}
	for _, p := range places {
		if u, ok, err := p.Usage(ctx); err != nil {
			return sr, err
		} else if ok {
			sr.Usage[p.Name()] = u
		}
	}
	return sr, nil
}

// describe notes the targets, once.
func (r *Report) describe(places []place, alone bool) {
	if alone || len(r.Targets) > 0 {
		return
	}
	for _, p := range places {
		r.Targets = append(r.Targets, p.Describe())
	}
}

// openAll opens all targets, or as many as it can before one fails.
func openAll(ctx context.Context, targets []Target, base string) (places []place, err error) {
	for i, t := range targets {
		own := filepath.Join(base, fmt.Sprint("target", i))
		if err := os.Mkdir(own, 0o755); err != nil {
			return places, err
		}
		dir, err := t.Open(ctx, own)
		places = append(places, place{t, dir})
		if err != nil {
			return places, fmt.Errorf("target %s: %w", t.Name(), err)
		}
	}
	return places, nil
}

func closeAll(places []place) error {
	var errs []error
	for _, p := range slices.Backward(places) {
		if err := p.Close(); err != nil {
			errs = append(errs, fmt.Errorf("target %s: %w", p.Name(), err))
		}
	}
	return errors.Join(errs...)
}

// row warms up, then runs the rounds. Only what no row can be measured after is an error; what goes wrong with a row is
// in its cells.
func (r *runner) row(ctx context.Context, w Workload, places []place) (Row, error) {
	row := Row{Name: w.Name, Ops: w.Ops, Bytes: w.Bytes, Series: w.Series, N: w.N, Sized: w.Sized}
	if row.Skipped = w.missing(); row.Skipped != "" {
		return row, nil
	}
	row.Cells = make([]Cell, len(places))
	for i, p := range places {
		row.Cells[i].Target = p.Name()
		row.Cells[i].Skipped = r.tooSmall(ctx, w, p)
	}
	rounds := r.Rounds
	if w.Rounds > 0 {
		rounds = min(rounds, w.Rounds)
	}
	for round := range rounds + 1 {
		runtime.GC() // of this process, so that it does not fall into a run
		r.pacer.tick()
		for _, i := range r.order(len(places)) {
			if err := r.cell(ctx, w, places[i], &row.Cells[i], round == 0); err != nil {
				return row, err
			}
			r.at.Done++
		}
	}
	row.summarise(r.Seed)
	return row, nil
}

// order shuffles the targets of a round.
func (r *runner) order(n int) []int { return rand.New(r.random).Perm(n) }

// cell runs a workload once on one target.
func (r *runner) cell(ctx context.Context, w Workload, p place, c *Cell, warmUp bool) error {
	if c.Skipped != "" || c.Error != "" {
		return nil
	}
	if r.Progress != nil {
		r.at.Target = p.Name()
		r.Progress(r.at)
	}
	x := exercise{runner: r, work: w, place: p}
	sample, err := x.run(ctx, warmUp)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		c.Error = err.Error()
		c.Samples = nil
		return nil
	}
	if warmUp {
		c.Stored = x.stored
		return nil
	}
	c.Samples = append(c.Samples, sample)
	return nil
}
