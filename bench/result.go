package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// reportFormat is the version of Report's encoding. A reader refuses another one.
const reportFormat = 1

// Report is what a benchmark found. Times are in nanoseconds.
type Report struct {
	Format  int           `json:"format"`
	Version string        `json:"version"` // of the program
	Started time.Time     `json:"started"`
	Took    int64         `json:"took_ns"`
	Seed    uint64        `json:"seed"`
	Rounds  int           `json:"rounds"`
	Smoke   bool          `json:"smoke,omitempty"` // the sizes were tiny: the times mean nothing
	Machine Machine       `json:"machine"`
	Noise   Noise         `json:"noise"`
	Targets []TargetInfo  `json:"targets"` // the first is the one that the others are baselines of
	Suites  []SuiteReport `json:"suites"`
	Stopped bool          `json:"stopped,omitempty"` // it was interrupted: rows are missing
}

// SuiteReport is what one suite found.
type SuiteReport struct {
	Name  string           `json:"name"`
	About string           `json:"about"`
	Usage map[string]Usage `json:"usage"` // by target, for those that have processes of their own: of the whole suite
	Rows  []Row            `json:"rows"`
}

// Row is one workload on all targets.
type Row struct {
	Name    string `json:"name"`
	Ops     int    `json:"ops,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"`
	Series  string `json:"series,omitempty"`
	N       int64  `json:"n,omitempty"`
	Sized   bool   `json:"sized,omitempty"`   // N is in bytes
	Skipped string `json:"skipped,omitempty"` // why it ran nowhere
	Cells   []Cell `json:"cells,omitempty"`
}

// Cell is one workload on one target.
type Cell struct {
	Target  string   `json:"target"`
	Skipped string   `json:"skipped,omitempty"` // why it did not run here
	Error   string   `json:"error,omitempty"`
	Samples []Sample `json:"samples,omitempty"`      // one a round
	Stored  *int64   `json:"stored_bytes,omitempty"` // by how much the target grew in the warm-up
	Summary *Summary `json:"summary,omitempty"`
	Ratios  []Ratio  `json:"ratios,omitempty"` // of the first target
	Noisy   bool     `json:"noisy,omitempty"`
}

// Sample is one run.
type Sample struct {
	Time     int64  `json:"ns"`
	CPU      int64  `json:"cpu_ns,omitempty"`   // of the target's own processes, while the run was timed
	Requests uint64 `json:"requests,omitempty"` // meanwhile
}

// Ratio says how many times as long as a baseline a target takes, with its interval of 95 %.
type Ratio struct {
	To    string  `json:"to"`
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Cell returns the cell of a target, or nil.
func (r *Row) Cell(target string) *Cell {
	for i := range r.Cells {
		if r.Cells[i].Target == target {
			return &r.Cells[i]
		}
	}
	return nil
}

// Ratio returns the ratio to a baseline, or nil.
func (c *Cell) Ratio(to string) *Ratio {
	for i := range c.Ratios {
		if c.Ratios[i].To == to {
			return &c.Ratios[i]
		}
	}
	return nil
}

func (c *Cell) times() []float64 {
	times := make([]float64, len(c.Samples))
	for i, s := range c.Samples {
		times[i] = float64(s.Time)
	}
	return times
}

// median returns the median of something of the samples.
func (c *Cell) median(of func(Sample) float64) float64 {
	values := make([]float64, len(c.Samples))
	for i, s := range c.Samples {
		values[i] = of(s)
	}
	return median(values)
}

// Requests returns the median of the requests of a run; negative when the target does not count them.
func (c *Cell) Requests() float64 {
	return c.median(func(s Sample) float64 { return float64(s.Requests) })
}

// CPU returns the median of the CPU time of a run, of the target's own processes, in nanoseconds.
func (c *Cell) CPU() float64 { return c.median(func(s Sample) float64 { return float64(s.CPU) }) }

// summarise fills in what follows from the samples.
func (r *Row) summarise(seed uint64) {
	for i := range r.Cells {
		c := &r.Cells[i]
		if len(c.Samples) == 0 {
			continue
		}
		s := summarise(c.times())
		c.Summary, c.Noisy = &s, s.Spread > noisySpread
		if i == 0 {
			continue
		}
		first := &r.Cells[0]
		if len(first.Samples) == len(c.Samples) && s.Median > 0 {
			q := Ratio{To: c.Target}
			q.Value, q.Low, q.High = ratio(first.times(), c.times(), seed)
			first.Ratios = append(first.Ratios, q)
		}
	}
}

// Failed returns how many cells have an error.
func (r *Report) Failed() (n int) {
	for _, s := range r.Suites {
		for _, row := range s.Rows {
			for _, c := range row.Cells {
				if c.Error != "" {
					n++
				}
			}
		}
	}
	return n
}

// WriteJSON writes the report with all samples.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}

// ErrFormat is for a report of another version of this program.
var ErrFormat = errors.New("report of another format")

// ReadReport reads what WriteJSON has written.
func ReadReport(r io.Reader) (*Report, error) {
	var report Report
	if err := json.NewDecoder(io.LimitReader(r, maxReport)).Decode(&report); err != nil {
		return nil, fmt.Errorf("read a report: %w", err)
	}
	if report.Format != reportFormat {
		return nil, fmt.Errorf("%w: %d, not %d", ErrFormat, report.Format, reportFormat)
	}
	return &report, nil
}
