package bench

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// palette is told apart by people who do not see all colours, and in grey (Okabe and Ito, 2008). The first is Carrel's.
var palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

func colour(i int) string { return palette[i%len(palette)] }

// svg collects a drawing. Lengths are in its own units, which are a pixel each on a screen.
type svg struct {
	b             strings.Builder
	width, height float64
}

func newSVG(width, height float64, title string) *svg {
	s := &svg{width: width, height: height}
	fmt.Fprintf(&s.b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, width, height, html.EscapeString(title))
	return s
}

func (s *svg) line(x1, y1, x2, y2 float64, class, colour string) {
	fmt.Fprintf(&s.b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"%s/>`, x1, y1, x2, y2, class,
		stroke(colour))
}

func (s *svg) dot(x, y float64, colour, title string) {
	fmt.Fprintf(&s.b, `<circle cx="%.1f" cy="%.1f" r="4.5" fill="%s"><title>%s</title></circle>`, x, y, colour,
		html.EscapeString(title))
}

// text is anchored at its "start", "middle" or "end".
func (s *svg) text(x, y float64, anchor, class, text string) {
	fmt.Fprintf(&s.b, `<text x="%.1f" y="%.1f" text-anchor="%s" class="%s">%s</text>`, x, y, anchor, class,
		html.EscapeString(text))
}

func (s *svg) path(points [][2]float64, colour string) {
	s.b.WriteString(`<polyline class="curve" points="`)
	for _, p := range points {
		fmt.Fprintf(&s.b, "%.1f,%.1f ", p[0], p[1])
	}
	fmt.Fprintf(&s.b, `"%s/>`, stroke(colour))
}

func stroke(colour string) string {
	if colour == "" {
		return ""
	}
	return fmt.Sprintf(` stroke="%s"`, colour)
}

// done returns the drawing. All text in it has been escaped.
func (s *svg) done() template.HTML { return template.HTML(s.b.String() + "</svg>") }

// logScale maps values to lengths by their logarithm.
type logScale struct{ low, high, from, to float64 }

func (l logScale) at(v float64) float64 {
	v = min(max(v, l.low), l.high)
	return l.from + (l.to-l.from)*math.Log(v/l.low)/math.Log(l.high/l.low)
}

// marks are the 1, 2 and 5 of each power of ten within the scale; only the 1 when there would be too many.
func (l logScale) marks() (values []float64) {
	steps := []float64{1, 2, 5}
	if math.Log10(l.high/l.low) > 3 {
		steps = steps[:1]
	}
	for e := math.Floor(math.Log10(l.low)); e <= math.Ceil(math.Log10(l.high)); e++ {
		for _, s := range steps {
			if v := s * math.Pow(10, e); v >= l.low*0.999 && v <= l.high*1.001 {
				values = append(values, v)
			}
		}
	}
	return values
}

const (
	chartWidth  = 960.0
	labelWidth  = 260.0
	numberWidth = 150.0 // right of the plot, where the ratios stand
	rowHeight   = 24.0
	axisHeight  = 28.0
)

// ratioChart shows the ratios of a suite: a row each, a dot for each baseline on the interval that it lies in, by
// logarithm, so that half and twice are as far from 1.
func ratioChart(s SuiteReport, targets []string) template.HTML {
	rows := rowsWithRatios(s)
	if len(rows) == 0 {
		return ""
	}
	height := axisHeight + rowHeight*float64(len(rows)) + 8
	scale := ratioScale(rows)
	out := newSVG(chartWidth, height, "times of "+s.Name+" as multiples of the baselines")
	for _, v := range scale.marks() {
		class := "grid"
		if v == 1 {
			class = "one"
		}
		out.line(scale.at(v), axisHeight-6, scale.at(v), height-4, class, "")
		out.text(scale.at(v), axisHeight-12, "middle", "axis", ratioSign+digits(v))
	}
	for i, row := range rows {
		y := axisHeight + rowHeight*(float64(i)+0.5)
		out.text(labelWidth-12, y+4, "end", "label", row.Name)
		drawRatios(out, row, scale, targets, y)
	}
	return out.done()
}

func drawRatios(out *svg, row *Row, scale logScale, targets []string, y float64) {
	ratios := row.Cells[0].Ratios
	var numbers []string
	for k, q := range ratios {
		yk := y + 6*(float64(k)-float64(len(ratios)-1)/2)
		c := colour(indexOf(targets, q.To))
		out.line(scale.at(q.Low), yk, scale.at(q.High), yk, "interval", c)
		out.dot(scale.at(q.Value), yk, c, fmt.Sprintf("%s: %s times %s", row.Name, q.String(), q.To))
		numbers = append(numbers, factor(q.Value))
	}
	out.text(chartWidth-4, y+4, "end", "number", strings.Join(numbers, "   "))
}

func rowsWithRatios(s SuiteReport) (rows []*Row) {
	for i := range s.Rows {
		if len(s.Rows[i].Cells) > 0 && len(s.Rows[i].Cells[0].Ratios) > 0 {
			rows = append(rows, &s.Rows[i])
		}
	}
	return rows
}

// ratioScale spans all values, and at least from a half to twice. Intervals may end outside of it.
func ratioScale(rows []*Row) logScale {
	low, high := 0.5, 2.0
	for _, row := range rows {
		for _, q := range row.Cells[0].Ratios {
			low, high = min(low, q.Value), max(high, q.Value)
		}
	}
	return logScale{low / 1.15, high * 1.15, labelWidth, chartWidth - numberWidth}
}

func indexOf(list []string, s string) int {
	for i, x := range list {
		if x == s {
			return i
		}
	}
	return len(list)
}

const (
	curveWidth, curveHeight = 470.0, 260.0
	curveLeft, curveRight   = 62.0, 14.0
	curveTop, curveBottom   = 12.0, 34.0
)

// growthChart shows the curves of one series, both axes by logarithm: a cost that does not grow is a level line.
func growthChart(series string, curves []Growth, targets []string) template.HTML {
	x := logScale{math.Inf(1), 0, curveLeft + 10, curveWidth - curveRight - 10}
	y := logScale{math.Inf(1), 0, curveHeight - curveBottom, curveTop}
	for _, g := range curves {
		for _, p := range g.Points {
			x.low, x.high = min(x.low, float64(p.N)), max(x.high, float64(p.N))
			y.low, y.high = min(y.low, p.Cost), max(y.high, p.Cost)
		}
	}
	y.low, y.high = y.low/1.6, y.high*1.6
	out := newSVG(curveWidth, curveHeight, series)
	for _, v := range y.marks() {
		out.line(curveLeft, y.at(v), curveWidth-curveRight, y.at(v), "grid", "")
		out.text(curveLeft-6, y.at(v)+4, "end", "axis", duration(v))
	}
	for _, p := range longest(curves) {
		out.text(x.at(float64(p.N)), curveHeight-curveBottom+20, "middle", "axis", curves[0].amount(p.N))
	}
	for _, g := range curves {
		var points [][2]float64
		c := colour(indexOf(targets, g.Target))
		for _, p := range g.Points {
			points = append(points, [2]float64{x.at(float64(p.N)), y.at(p.Cost)})
		}
		out.path(points, c)
		for i, p := range g.Points {
			out.dot(points[i][0], points[i][1], c, fmt.Sprintf("%s: %s at %s", g.Target, duration(p.Cost), g.amount(p.N)))
		}
	}
	return out.done()
}

// longest returns the points of the curve that has most.
func longest(curves []Growth) (points []Point) {
	for _, g := range curves {
		if len(g.Points) > len(points) {
			points = g.Points
		}
	}
	return points
}

// amount shows a number of units, which are files or bytes.
func (g Growth) amount(n int64) string {
	if g.Sized {
		return size(n)
	}
	return count(n)
}
