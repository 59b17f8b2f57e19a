package bench

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// TableOptions say how a table is drawn.
type TableOptions struct {
	Bars bool // draw ratios as bars, for a terminal
}

// WriteTable writes the report for people.
func (r *Report) WriteTable(w io.Writer, o TableOptions) error {
	var b strings.Builder
	r.head(&b)
	for _, s := range r.Suites {
		r.suiteTable(&b, s, o)
	}
	r.foot(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) head(b *strings.Builder) {
	fmt.Fprintf(b, "carrel %s, %s, seed %d, %d rounds, %s\n", r.Version, r.Started.Format("2006-01-02 15:04"), r.Seed,
		r.Rounds, time.Duration(r.Took).Round(time.Second))
	m := r.Machine
	fmt.Fprintf(b, "%d × %s, %s, Linux %s, %s\n", m.Cores, m.CPU, size(m.Memory), m.Kernel, m.Go)
	for _, t := range r.Targets {
		fmt.Fprintf(b, "  %s: %s on %s\n", t.Name, t.Kind, t.Filesystem)
	}
}

// suiteTable writes one suite. Times are medians, with the least and the 95th percentile; ratios have their interval.
func (r *Report) suiteTable(b *strings.Builder, s SuiteReport, o TableOptions) {
	fmt.Fprintf(b, "\n%s: %s\n\n", s.Name, s.About)
	t := grid{rows: [][]string{r.columns(s, o)}}
	for i := range s.Rows {
		t.rows = append(t.rows, r.tableRow(&s.Rows[i], t.rows[0]))
	}
	t.write(b)
	for _, name := range slices.Sorted(maps.Keys(s.Usage)) {
		u := s.Usage[name]
		fmt.Fprintf(b, "\n  %s's daemon: %s of CPU time, at most %s of memory, %d requests\n", name,
			time.Duration(u.CPU).Round(time.Millisecond), size(u.PeakRSS), u.Requests)
	}
	for _, g := range s.Growth() {
		fmt.Fprintf(b, "  %s on %s: ×%s between the cheapest and the dearest, from %s\n", g.Series, g.Target,
			factor(g.Factor()), g.span())
	}
}

// The titles of columns that are not named after a target.
const (
	titleRow      = ""
	titleBar      = "bar"
	titleRate     = "rate"
	titleRequests = "req/op"
	titleCPU      = "cpu"
	titleStored   = "stored"
	ratioSign     = "×"
)

// columns names what the table of a suite has: the ratios only where there is a baseline, the daemon's numbers only
// where there is a daemon.
func (r *Report) columns(s SuiteReport, o TableOptions) []string {
	targets := s.targets()
	titles := append([]string{titleRow}, targets...)
	if len(targets) == 0 {
		return titles
	}
	for _, to := range targets[1:] {
		titles = append(titles, ratioSign+to)
	}
	if len(targets) > 1 && o.Bars {
		titles = append(titles, titleBar)
	}
	titles = append(titles, titleRate)
	if _, ok := s.Usage[targets[0]]; ok {
		titles = append(titles, titleRequests, titleCPU, titleStored)
	}
	return titles
}

// targets returns the targets of a suite, from its first row that ran.
func (s *SuiteReport) targets() (names []string) {
	for _, row := range s.Rows {
		for _, c := range row.Cells {
			names = append(names, c.Target)
		}
		if len(names) > 0 {
			return names
		}
	}
	return nil
}

func (r *Report) tableRow(row *Row, titles []string) []string {
	out := []string{row.Name}
	if row.Skipped != "" {
		return append(out, row.Skipped)
	}
	first := &row.Cells[0]
	for _, title := range titles[1:] {
		out = append(out, row.value(first, title))
	}
	return out
}

// value is what stands in a column.
func (row *Row) value(first *Cell, title string) string {
	if to, ok := strings.CutPrefix(title, ratioSign); ok {
		return first.Ratio(to).String()
	}
	if c := row.Cell(title); c != nil {
		return c.String()
	}
	if first.Summary == nil {
		return ""
	}
	switch title {
	case titleBar:
		if len(first.Ratios) > 0 {
			return bar(first.Ratios[0].Value)
		}
	case titleRate:
		return row.rate(first)
	case titleRequests:
		if row.Ops > 0 {
			return fmt.Sprintf("%.2f", first.Requests()/float64(row.Ops))
		}
		return fmt.Sprintf("(%.0f)", first.Requests())
	case titleCPU:
		return duration(first.CPU())
	case titleStored:
		if first.Stored != nil {
			return size(*first.Stored)
		}
	}
	return ""
}

// rate is bytes or operations in time.
func (row *Row) rate(c *Cell) string {
	switch seconds := c.Summary.Median / 1e9; {
	case row.Bytes > 0:
		return fmt.Sprintf("%s/s", size(int64(float64(row.Bytes)/seconds)))
	case row.Ops > 0:
		return duration(c.Summary.Median/float64(row.Ops)) + "/op"
	}
	return ""
}

// String is a cell for a table.
func (c *Cell) String() string {
	switch {
	case c.Error != "":
		return "FAILED"
	case c.Summary == nil:
		return cmp.Or(c.Skipped, "-")
	}
	s := durations(c.Summary.Median, c.Summary.Min, c.Summary.P95)
	if c.Noisy {
		s += " ~"
	}
	return s
}

// String is a ratio for a table. It takes nil.
func (q *Ratio) String() string {
	if q == nil {
		return "-"
	}
	return fmt.Sprintf("%s (%s–%s)", factor(q.Value), factor(q.Low), factor(q.High))
}

func (r *Report) foot(b *strings.Builder) {
	b.WriteString("\nTimes: median (least–95th percentile), process starts included unless the suite says otherwise.\n" +
		"×: how many times as long as there, with its 95 % interval; less is better. ~: too noisy to judge.\n" +
		"req/op, cpu, stored: requests from the kernel for an operation (in brackets: for all), the daemon's CPU time\n" +
		"meanwhile, and by how much the store grew.\n")
	if r.Noise.Noisy {
		fmt.Fprintf(b, "NOISY MACHINE: %s.\n", r.Noise.Why)
	}
	if r.Smoke {
		b.WriteString("SMOKE RUN: the work is tiny, the times mean nothing.\n")
	}
	if r.Stopped {
		b.WriteString("STOPPED: rows are missing.\n")
	}
	for _, s := range r.Suites {
		for _, row := range s.Rows {
			for _, c := range row.Cells {
				if c.Error != "" {
					fmt.Fprintf(b, "FAILED: %s: %s on %s: %s\n", s.Name, row.Name, c.Target, c.Error)
				}
			}
		}
	}
}

// grid lays cells out in columns, the first to the left, all others to the right.
type grid struct{ rows [][]string }

func (g grid) write(b *strings.Builder) {
	var widths []int
	for _, row := range g.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if len(row) == len(g.rows[0]) || i == 0 { // what a skipped row says may be as long as it likes
				widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			}
		}
	}
	for _, row := range g.rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell)))
			switch {
			case i == 0:
				line.WriteString("  " + cell + pad)
			case len(row) != len(g.rows[0]): // what a skipped row says
				line.WriteString("  " + cell)
			case g.rows[0][i] == titleBar:
				line.WriteString("  " + cell + pad)
			default:
				line.WriteString("  " + pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// barWidth is the longest bar, in characters; barUnit how many of them are a ratio of 1.
const (
	barWidth = 20
	barUnit  = 2
)

// bar draws a ratio, in eighths of a character. One that is too long ends in an arrow.
func bar(ratio float64) string {
	eighths := int(ratio*barUnit*8 + 0.5)
	if eighths > barWidth*8 {
		return strings.Repeat("█", barWidth-1) + "▶"
	}
	s := strings.Repeat("█", eighths/8)
	if part := eighths % 8; part > 0 {
		s += string([]rune("▏▎▍▌▋▊▉")[part-1])
	}
	return cmp.Or(s, "▏")
}
