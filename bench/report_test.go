package bench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write golden files anew")

// golden compares text with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what it was; go test -update writes it anew. It is:\n%s", name, got)
	}
}

// samples are times in milliseconds, each of 10 requests and a millisecond of CPU time.
func samples(ms ...float64) (list []Sample) {
	for _, v := range ms {
		list = append(list, Sample{Time: int64(v * 1e6), CPU: 1e6, Requests: 10})
	}
	return list
}

func plainSamples(ms ...float64) []Sample {
	list := samples(ms...)
	for i := range list {
		list[i].CPU, list[i].Requests = 0, 0
	}
	return list
}

func bytesOf(n int64) *int64 { return &n }

// sampleReport has a row of every kind.
func sampleReport() *Report {
	r := &Report{
		Format: reportFormat, Version: "v1", Started: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Took: 61e9,
		Seed: 5, Rounds: 5,
		Machine: Machine{CPU: "CPU <9>", Cores: 2, Memory: 8 << 30, Kernel: "6.1", Go: "go1", OS: "Linux"},
		Noise:   Noise{Pace: Summary{Spread: 0.02}, Others: 0.01},
		Targets: []TargetInfo{
			{Name: "carrel", Kind: "carrel", Filesystem: "fuse.carrel"}, {Name: "tmpfs", Kind: "tmpfs", Filesystem: "tmpfs"},
			{Name: "ext4", Kind: "directory", Filesystem: "ext4"},
		},
	}
	rows := []Row{
		{Name: "create 5 <files>", Ops: 5, Cells: []Cell{
			{Target: "carrel", Samples: samples(50, 51, 52, 53, 54), Stored: bytesOf(0)},
			{Target: "tmpfs", Samples: plainSamples(10, 10.5, 11, 11.5, 12)},
			{Target: "ext4", Samples: plainSamples(40, 60, 80, 120, 160)},
		}},
		{Name: "write 1 MiB", Bytes: 1 << 20, Cells: []Cell{
			{Target: "carrel", Samples: samples(1, 1.01, 1.02, 1.03, 1.04), Stored: bytesOf(1 << 20)},
			{Target: "tmpfs", Skipped: "only 1 MiB are free"},
			{Target: "ext4", Error: "exit status 1: it <broke>"},
		}},
		{Name: "fly", Skipped: "wings is not installed"},
	}
	for _, n := range []int64{1000, 10_000} {
		ms := float64(n) / 100
		rows = append(rows, Row{Name: "list " + count(n), Ops: int(n), Series: "list a file", N: n, Cells: []Cell{
			{Target: "carrel", Samples: samples(ms, ms, 1.2*ms, 1.2*ms, 1.2*ms)},
			{Target: "tmpfs", Samples: plainSamples(ms/2, ms/2, ms/2, ms/2, ms/2)},
			{Target: "ext4", Samples: plainSamples(ms, ms, ms, ms, ms)},
		}})
	}
	for i := range rows {
		rows[i].summarise(r.Seed)
	}
	r.Suites = []SuiteReport{{
		Name: "sample", About: "rows of all kinds", Rows: rows,
		Usage: map[string]Usage{"carrel": {CPU: 1234e6, PeakRSS: 64 << 20, Requests: 777}},
	}}
	return r
}

func table(t *testing.T, r *Report, o TableOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteTable(&b, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTable(t *testing.T) {
	r := sampleReport()
	golden(t, "table.txt", table(t, r, TableOptions{}))
	r.Smoke, r.Stopped, r.Noise.Noisy, r.Noise.Why = true, true, true, "somebody sang"
	golden(t, "table-bars.txt", table(t, r, TableOptions{Bars: true}))
}

func TestJSON(t *testing.T) {
	r := sampleReport()
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	back, err := ReadReport(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := table(t, back, TableOptions{}), table(t, r, TableOptions{}); got != want {
		t.Errorf("a report that was written and read is\n%s\nnot\n%s", got, want)
	}
	other := strings.Replace(b.String(), `"format": 1`, `"format": 2`, 1)
	if _, err := ReadReport(strings.NewReader(other)); !errors.Is(err, ErrFormat) {
		t.Errorf("a report of another format: %v", err)
	}
	if _, err := ReadReport(strings.NewReader(`{"format"`)); err == nil {
		t.Error("half a report was read")
	}
}

func TestRatioChart(t *testing.T) {
	r := sampleReport()
	golden(t, "ratios.svg", string(ratioChart(r.Suites[0], []string{"carrel", "tmpfs", "ext4"})))
	if chart := ratioChart(SuiteReport{}, nil); chart != "" {
		t.Errorf("a chart of nothing: %s", chart)
	}
}

func pageOf(t *testing.T, r, old *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteHTML(&b, old); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The page is whole, needs nothing from elsewhere, and has nothing in it that is not escaped.
func TestPage(t *testing.T) {
	r := sampleReport()
	text := pageOf(t, r, sampleReport())
	for _, want := range []string{
		"Carrel beside tmpfs and ext4", "create 5 &lt;files&gt;", "wings is not installed", "777", "64 MiB", "FAILED",
		"list a file", "Mann–Whitney", "</html>", "CPU &lt;9&gt;",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	for _, bad := range []string{
		"http:", "https:", "src=", "url(", "<script", "<link", "5 <files>", "ZgotmplZ", "NaN", "%!", "Inf",
	} {
		if strings.Contains(text, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	drawings := 0
	for rest := text; ; drawings++ {
		_, after, ok := strings.Cut(rest, "<svg")
		if !ok {
			break
		}
		drawing, remaining, _ := strings.Cut(after, "</svg>")
		wellFormed(t, "<svg"+drawing+"</svg>")
		rest = remaining
	}
	if drawings != 2 {
		t.Errorf("the page has %d charts, not 2", drawings)
	}
}

func wellFormed(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
}

// A report of which nothing ran is shown too.
func TestEmpty(t *testing.T) {
	r := &Report{Format: reportFormat, Suites: []SuiteReport{{Name: "none", Rows: []Row{{Name: "x", Skipped: "why"}}}}}
	if text := table(t, r, TableOptions{Bars: true}); !strings.Contains(text, "why") {
		t.Errorf("the table is\n%s", text)
	}
	if text := pageOf(t, r, r); !strings.Contains(text, "why") || !strings.Contains(text, "Carrel&#39;s store") {
		t.Errorf("the page is\n%s", text)
	}
}

func TestGrowth(t *testing.T) {
	r := sampleReport()
	curves := r.Suites[0].Growth()
	if len(curves) != 3 {
		t.Fatalf("%d curves, not 3", len(curves))
	}
	g := curves[0]
	if g.Target != "carrel" || len(g.Points) != 2 || g.Points[0].Cost != 12_000 || !near(g.Factor(), 1, 1e-9) {
		t.Errorf("curve %+v", g)
	}
	curves[0].Points[1].Cost *= 3
	if f := curves[0].Factor(); !near(f, 3, 1e-9) {
		t.Errorf("factor %v, want 3", f)
	}
}

// scaled multiplies the times of a target.
func scaled(r *Report, target string, by float64) *Report {
	for _, s := range r.Suites {
		for i := range s.Rows {
			for k := range s.Rows[i].Cells {
				c := &s.Rows[i].Cells[k]
				for n := range c.Samples {
					if c.Target == target {
						c.Samples[n].Time = int64(float64(c.Samples[n].Time) * by)
					}
				}
				c.Ratios = nil
			}
			s.Rows[i].summarise(r.Seed)
		}
	}
	return r
}

func TestCompare(t *testing.T) {
	for _, tt := range []struct {
		name string
		new  *Report
		want Verdict
	}{
		{"nothing changed", sampleReport(), Same},
		{"half as long", scaled(sampleReport(), "carrel", 0.5), Better},
		{"twice as long", scaled(sampleReport(), "carrel", 2), Worse},
		{"less than is worth a word", scaled(sampleReport(), "carrel", 1.02), Same},
		{"within the noise", scaled(sampleReport(), "carrel", 1.051), Unclear},
		{"a slow machine", scaled(scaled(sampleReport(), "carrel", 2), "tmpfs", 2), Elsewhere},
		{"more than a slow machine", scaled(scaled(sampleReport(), "carrel", 8), "tmpfs", 2), Worse},
	} {
		c := Compare(sampleReport(), tt.new)
		if got := c.Changes[0]; got.Row != "create 5 <files>" || got.Verdict != tt.want {
			t.Errorf("%s: %+v, want %s", tt.name, got, tt.want)
		}
	}
}

func TestCompareTable(t *testing.T) {
	old, new := sampleReport(), scaled(sampleReport(), "carrel", 0.5)
	old.Suites[0].Rows[1].Name = "write 2 MiB"
	old.Suites = append(old.Suites, SuiteReport{Name: "other", Rows: []Row{{Name: "only here"}}})
	old.Machine.Cores = 64
	var b bytes.Buffer
	if err := Compare(old, new).WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "compare.txt", b.String())
}
