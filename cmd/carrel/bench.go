package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/bench"
	"github.com/carrelfs/carrel/bench/step"
)

func (p *program) benchCommand() *cli.Command {
	return &cli.Command{
		Name:  "bench",
		Usage: "measure a mount beside tmpfs, the local disk and others",
		Description: "Mounts a workspace of a fresh store and does the same work in it and in other places, in turns.\n" +
			"Suites: " + strings.Join(bench.SuiteNames(), ", ") + "; 'all' is all of them. It needs a quiet machine,\n" +
			"some GiB on the disk of --work, and minutes for each suite. Ctrl-C ends it and leaves nothing.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "suite", Usage: "run these `SUITES`, with commas", Value: "reference"},
			&cli.StringFlag{Name: "rows", Usage: "only those whose names match `REGEXP` (RE2)"},
			&cli.StringFlag{
				Name: "vs", Usage: "compare with these `PLACES`, with commas: tmpfs (as root), disk, DIR or NAME=DIR",
				Value: "tmpfs,disk",
			},
			&cli.StringSliceFlag{Name: "peer", Usage: "compare with what a command mounts on $DIR: `NAME=COMMAND`"},
			&cli.IntFlag{Name: "rounds", Usage: "time each row `N` times, at least 5", Value: bench.DefaultRounds},
			&cli.Uint64Flag{Name: "seed", Usage: "shuffle by `SEED`", DefaultText: "another each time"},
			&cli.StringFlag{Name: "work", Usage: "work in `DIR`, on the disk that is measured", Value: os.TempDir()},
			&cli.StringFlag{Name: "json", Usage: "write all samples to `FILE`; - is stdout, in place of the table"},
			&cli.StringFlag{Name: "html", Usage: "write a page with charts to `FILE`"},
			&cli.StringFlag{Name: "compare", Usage: "say what is better or worse than in `OLD.json`"},
			&cli.StringFlag{Name: "from", Usage: "measure nothing; show the report of `FILE.json`"},
			&cli.IntFlag{Name: "max-files", Usage: "let the suite scale go up to `N` files", Value: bench.FullSizes().MaxFiles},
			&cli.Int64Flag{
				Name: "max-mib", Usage: "let the suite scale go up to a file of `N` MiB", Value: bench.FullSizes().MaxBytes >> 20,
			},
			&cli.BoolFlag{Name: "smoke", Usage: "try everything with tiny sizes and one round; the times mean nothing"},
		},
		Action: p.bench,
	}
}

// benchStepCommand is a piece of work that a benchmark times, in a process of its own.
func (p *program) benchStepCommand() *cli.Command {
	return &cli.Command{
		Name: step.Command, Hidden: true, SkipFlagParsing: true,
		Action: func(c *cli.Context) error { return step.Main(c.Args().Slice()) },
	}
}

func (p *program) bench(c *cli.Context) error {
	if _, err := arguments(c, 0, 0); err != nil {
		return err
	}
	var old *bench.Report
	if name := c.String("compare"); name != "" {
		var err error
		if old, err = readReport(name); err != nil {
			return err
		}
	}
	report, err := p.measure(c)
	if report == nil {
		return err
	}
	err = errors.Join(err, p.showReport(c, report, old))
	if n := report.Failed(); n > 0 {
		err = errors.Join(err, fmt.Errorf("bench: %d cells have failed", n))
	}
	return err
}

// measure runs the benchmark, or reads the report of an earlier one.
func (p *program) measure(c *cli.Context) (*bench.Report, error) {
	if name := c.String("from"); name != "" {
		return readReport(name)
	}
	config, err := p.benchConfig(c)
	if err != nil {
		return nil, err
	}
	bar := p.benchBar()
	config.Progress = bar.show
	defer bar.close()
	// A terminal that is closed must not leave a tmpfs mounted.
	ctx, stop := signal.NotifyContext(c.Context, syscall.SIGHUP)
	defer stop()
	return bench.Run(ctx, config)
}

func readReport(name string) (*bench.Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	report, err := bench.ReadReport(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return report, nil
}

func (p *program) benchConfig(c *cli.Context) (bench.Config, error) {
	config := bench.Config{
		Version: measuredVersion(), Work: c.String("work"), Rounds: c.Int("rounds"), Seed: c.Uint64("seed"), Smoke: c.Bool("smoke"),
	}
	program, err := os.Executable()
	if err != nil {
		return config, err
	}
	config.Program = program
	if !c.IsSet("seed") {
		config.Seed = rand.Uint64() >> 32 // short enough to be typed again
	}
	if config.Smoke && !c.IsSet("rounds") {
		config.Rounds = 1
	}
	if config.Rounds < bench.MinRounds && !config.Smoke || config.Rounds < 1 {
		return config, &usageError{c, fmt.Sprintf("fewer than %d rounds say nothing", bench.MinRounds)}
	}
	if config.Suites, err = bench.Suites(strings.Split(c.String("suite"), ","), benchSizes(c)); err != nil {
		return config, &usageError{c, err.Error()}
	}
	if config.Suites, err = bench.OnlyRows(config.Suites, c.String("rows")); err != nil {
		return config, &usageError{c, err.Error()}
	}
	config.Targets, err = benchTargets(c, program)
	return config, err
}

// measuredVersion is the version with the commit, when the program was built where there is one.
func measuredVersion() string {
	v := version()
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 && !strings.Contains(v, s.Value[:12]) {
			v += " at " + s.Value[:12]
		}
		if s.Key == "vcs.modified" && s.Value == "true" && !strings.Contains(v, "dirty") {
			v += " with changes"
		}
	}
	return v
}

func benchSizes(c *cli.Context) bench.Sizes {
	sizes := bench.FullSizes()
	if c.Bool("smoke") {
		sizes = bench.SmokeSizes()
	}
	if c.IsSet("max-files") {
		sizes.MaxFiles = max(1, c.Int("max-files"))
	}
	if c.IsSet("max-mib") {
		sizes.MaxBytes = max(1, c.Int64("max-mib")) << 20
	}
	return sizes
}

// benchTargets are a Carrel mount and what it is compared with.
func benchTargets(c *cli.Context, program string) ([]bench.Target, error) {
	work, err := realPath(c.String("work"))
	if err != nil {
		return nil, err
	}
	targets := []bench.Target{bench.Carrel(program)}
	for _, place := range strings.Split(c.String("vs"), ",") {
		switch place {
		case "":
		case "tmpfs":
			targets = append(targets, bench.Tmpfs())
		case "disk":
			targets = append(targets, bench.Disk(work))
		default:
			name, dir, named := strings.Cut(place, "=")
			if !named {
				name, dir = "", place
			}
			t, err := bench.Directory(name, dir)
			if err != nil {
				return nil, err
			}
			targets = append(targets, t)
		}
	}
	for _, peer := range c.StringSlice("peer") {
		name, command, ok := strings.Cut(peer, "=")
		if !ok || name == "" || command == "" {
			return nil, &usageError{c, fmt.Sprintf("%q is no NAME=COMMAND", peer)}
		}
		targets = append(targets, bench.Peer(name, command))
	}
	var names []string
	for _, t := range targets {
		if slices.Contains(names, t.Name()) {
			return nil, &usageError{c, fmt.Sprintf("two of the places are called %s", t.Name())}
		}
		names = append(names, t.Name())
	}
	return targets, nil
}

// showReport writes the report in all the ways that were asked for.
func (p *program) showReport(c *cli.Context, r, old *bench.Report) error {
	var errs []error
	toStdout := c.String("json") == "-"
	if name := c.String("json"); name != "" && !toStdout {
		errs = append(errs, writeReport(name, r.WriteJSON))
	}
	if name := c.String("html"); name != "" {
		errs = append(errs, writeReport(name, func(w io.Writer) error { return r.WriteHTML(w, old) }))
	}
	if toStdout {
		return errors.Join(append(errs, r.WriteJSON(p.stdout))...)
	}
	errs = append(errs, r.WriteTable(p.stdout, bench.TableOptions{Bars: p.screen}))
	if old != nil {
		errs = append(errs, bench.Compare(old, r).WriteTable(p.stdout))
	}
	return errors.Join(errs...)
}

func writeReport(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// benchBar shows how far a benchmark is, when stderr is a terminal.
type benchBar struct{ bar *progressbar.ProgressBar }

func (p *program) benchBar() *benchBar {
	if !p.talk {
		return &benchBar{}
	}
	return &benchBar{progressbar.NewOptions(1, progressbar.OptionSetWriter(p.stderr), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(false), progressbar.OptionSetWidth(20))}
}

// The errors of a bar are those of writing to a terminal that is gone: the work goes on.

func (b *benchBar) show(at bench.Progress) {
	if b.bar == nil {
		return
	}
	b.bar.ChangeMax(at.Total)
	b.bar.Describe(fmt.Sprintf("%s: %s on %s", at.Suite, at.Row, at.Target))
	_ = b.bar.Set(at.Done)
}

func (b *benchBar) close() {
	if b.bar != nil {
		_ = b.bar.Finish()
	}
}
