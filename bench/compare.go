package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Verdict says what became of a row.
type Verdict string

// The verdicts. A change is one when it is five percent at least, and would come by chance in less than one of a
// hundred rows; else it is unclear. When a baseline has changed along, it was the machine that changed.
const (
	Better    Verdict = "better"
	Worse     Verdict = "worse"
	Same      Verdict = "same"
	Unclear   Verdict = "unclear"
	Elsewhere Verdict = "machine"
)

// Change is a row of the first target in two reports.
type Change struct {
	Suite, Row string
	Old, New   float64 // medians, in nanoseconds
	P          float64 // the probability of such a difference by chance
	Baseline   float64 // by which factor the first baseline's time has changed; 0 when it is not in both
	Verdict    Verdict
}

// Factor is the new time by the old one: less is better.
func (c Change) Factor() float64 { return c.New / c.Old }

// Comparison is two reports side by side.
type Comparison struct {
	Old, New *Report
	Changes  []Change
	Missing  []string // rows that only one of them has, of suites that both have
}

// Compare compares the first target's rows by name.
func Compare(old, new *Report) *Comparison {
	c := &Comparison{Old: old, New: new}
	before := old.byName()
	for _, s := range new.Suites {
		for i := range s.Rows {
			row := &s.Rows[i]
			name := s.Name + ": " + row.Name
			if was := before[name]; was != nil {
				delete(before, name)
				if x, ok := change(s.Name, was, row); ok {
					c.Changes = append(c.Changes, x)
				}
			} else if old.has(s.Name) {
				c.Missing = append(c.Missing, name+" (only new)")
			}
		}
	}
	for _, s := range old.Suites {
		for _, row := range s.Rows {
			if name := s.Name + ": " + row.Name; before[name] != nil && new.has(s.Name) {
				c.Missing = append(c.Missing, name+" (only old)")
			}
		}
	}
	return c
}

func (r *Report) has(suite string) bool {
	return slices.ContainsFunc(r.Suites, func(s SuiteReport) bool { return s.Name == suite })
}

func (r *Report) byName() map[string]*Row {
	rows := map[string]*Row{}
	for _, s := range r.Suites {
		for i := range s.Rows {
			rows[s.Name+": "+s.Rows[i].Name] = &s.Rows[i]
		}
	}
	return rows
}

// change compares a row that ran in both reports.
func change(suite string, old, new *Row) (c Change, ok bool) {
	if len(old.Cells) == 0 || len(new.Cells) == 0 {
		return c, false
	}
	a, b := &old.Cells[0], &new.Cells[0]
	if a.Summary == nil || b.Summary == nil {
		return c, false
	}
	c = Change{Suite: suite, Row: new.Name, Old: a.Summary.Median, New: b.Summary.Median}
	c.P = mannWhitney(a.times(), b.times())
	c.Verdict = verdict(c.Factor(), c.P)
	was, is := baseline(old, new)
	if was == nil {
		return c, true
	}
	c.Baseline = is.Summary.Median / was.Summary.Median
	moved := verdict(c.Baseline, mannWhitney(was.times(), is.times()))
	half := math.Abs(math.Log(c.Factor())) / 2
	if (moved == Better || moved == Worse) && moved == c.Verdict && math.Abs(math.Log(c.Baseline)) >= half {
		c.Verdict = Elsewhere
	}
	return c, true
}

// baseline returns the first one that ran in both rows, or nil.
func baseline(old, new *Row) (was, is *Cell) {
	for i := 1; i < len(new.Cells); i++ {
		is := &new.Cells[i]
		if was := old.Cell(is.Target); was != nil && was.Summary != nil && is.Summary != nil {
			return was, is
		}
	}
	return nil, nil
}

func verdict(factor, p float64) Verdict {
	switch {
	case math.Abs(factor-1) < minChange:
		return Same
	case p >= significant:
		return Unclear
	case factor < 1:
		return Better
	}
	return Worse
}

// Count returns how many rows have a verdict.
func (c *Comparison) Count(v Verdict) (n int) {
	for _, x := range c.Changes {
		if x.Verdict == v {
			n++
		}
	}
	return n
}

// WriteTable writes the comparison for people.
func (c *Comparison) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\nBeside %s of %s: %d better, %d worse, %d the same, %d unclear, %d as the machine has changed\n",
		c.Old.Version, c.Old.Started.Format("2006-01-02 15:04"), c.Count(Better), c.Count(Worse), c.Count(Same),
		c.Count(Unclear), c.Count(Elsewhere))
	if c.Old.Machine.CPU != c.New.Machine.CPU || c.Old.Machine.Cores != c.New.Machine.Cores {
		b.WriteString("THESE ARE TWO MACHINES: only ratios can be compared, not times.\n")
	}
	b.WriteString("\n")
	g := grid{rows: [][]string{{"", "old", "new", "×old", "baseline ×old", "p", "verdict"}}}
	for _, x := range c.Changes {
		g.rows = append(g.rows, x.Cells())
	}
	g.write(&b)
	for _, name := range c.Missing {
		fmt.Fprintf(&b, "  %s\n", name)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Cells is the row of a table: name, old, new, new by old, the same of the baseline, probability, verdict.
func (c Change) Cells() []string {
	baseline := "-"
	if c.Baseline > 0 {
		baseline = factor(c.Baseline)
	}
	marks := map[Verdict]string{Better: "better", Worse: "WORSE", Unclear: "?", Elsewhere: "the machine"}
	return []string{c.Suite + ": " + c.Row, duration(c.Old), duration(c.New), factor(c.Factor()), baseline,
		fmt.Sprintf("%.3f", c.P), marks[c.Verdict]}
}
