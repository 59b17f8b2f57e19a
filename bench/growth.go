package bench

import "fmt"

// Point is the cost of an operation or of a mebibyte, in nanoseconds, where there are N files or the file has N bytes.
type Point struct {
	N    int64
	Cost float64
}

// Growth says how the cost of a unit grows on one target: the curve of one series.
type Growth struct {
	Series, Target string
	Sized          bool // N is a size in bytes
	Points         []Point
}

// Factor returns how many times as much it costs at the dearest point as at the cheapest: 1 is a cost that does not
// grow.
func (g Growth) Factor() float64 {
	low, high := g.Points[0].Cost, g.Points[0].Cost
	for _, p := range g.Points {
		low, high = min(low, p.Cost), max(high, p.Cost)
	}
	return high / low
}

// span shows the range.
func (g Growth) span() string {
	return fmt.Sprintf("%s to %s", g.amount(g.Points[0].N), g.amount(g.Points[len(g.Points)-1].N))
}

// Growth returns the curves of a suite that have two points or more, by series and target.
func (s *SuiteReport) Growth() (curves []Growth) {
	at := map[[2]string]int{}
	for i := range s.Rows {
		row := &s.Rows[i]
		units := float64(row.Ops)
		if row.Bytes > 0 {
			units = float64(row.Bytes) / (1 << 20)
		}
		if row.Series == "" || units == 0 {
			continue
		}
		for _, c := range row.Cells {
			if c.Summary == nil {
				continue
			}
			key := [2]string{row.Series, c.Target}
			k, ok := at[key]
			if !ok {
				k = len(curves)
				at[key] = k
				curves = append(curves, Growth{Series: row.Series, Target: c.Target, Sized: row.Sized})
			}
			curves[k].Points = append(curves[k].Points, Point{row.N, c.Summary.Median / units})
		}
	}
	long := curves[:0]
	for _, g := range curves {
		if len(g.Points) > 1 {
			long = append(long, g)
		}
	}
	return long
}
