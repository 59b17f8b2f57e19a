package bench

import (
	_ "embed"
	"html/template"
	"io"
	"math"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"size": size, "factor": factor, "percent": func(v float64) int { return int(100*v + 0.5) },
	"took":        func(ns int64) time.Duration { return time.Duration(ns).Round(time.Second) },
	"nanoseconds": func(ns int64) string { return duration(float64(ns)) },
}).Parse(pageText))

// page is what the template shows.
type page struct {
	*Report
	Names      []string // of the targets
	Sections   []section
	Comparison *Comparison // or nil
}

// section is a suite on the page.
type section struct {
	SuiteReport
	Baselines []mean
	Ratios    template.HTML
	Curves    []curve
	Titles    []string
	Table     [][]string
}

// mean is the geometric mean of a suite's ratios to a baseline: that of ratios whose inverses mean as much.
type mean struct {
	To    string
	Value float64
	Rows  int
}

// curve is a chart of the suite scale.
type curve struct {
	Series string
	Chart  template.HTML
	Growth []Growth
}

// WriteHTML writes the report as one page that needs nothing else, for screen and paper. old may be nil, or a report to
// compare with.
func (r *Report) WriteHTML(w io.Writer, old *Report) error {
	p := page{Report: r}
	for _, t := range r.Targets {
		p.Names = append(p.Names, t.Name)
	}
	for _, s := range r.Suites {
		p.Sections = append(p.Sections, r.section(s, p.Names))
	}
	if old != nil {
		p.Comparison = Compare(old, r)
	}
	return pageTemplate.Execute(w, p)
}

func (r *Report) section(s SuiteReport, targets []string) section {
	x := section{SuiteReport: s, Baselines: means(s), Ratios: ratioChart(s, targets), Titles: r.columns(s, TableOptions{})}
	for i := range s.Rows {
		x.Table = append(x.Table, r.tableRow(&s.Rows[i], x.Titles))
	}
	at := map[string]int{}
	for _, g := range s.Growth() {
		k, ok := at[g.Series]
		if !ok {
			k = len(x.Curves)
			at[g.Series] = k
			x.Curves = append(x.Curves, curve{Series: g.Series})
		}
		x.Curves[k].Growth = append(x.Curves[k].Growth, g)
	}
	for i, c := range x.Curves {
		x.Curves[i].Chart = growthChart(c.Series, c.Growth, targets)
	}
	return x
}

func means(s SuiteReport) (all []mean) {
	at, logs := map[string]int{}, []float64{}
	for _, row := range rowsWithRatios(s) {
		for _, q := range row.Cells[0].Ratios {
			k, ok := at[q.To]
			if !ok {
				k = len(all)
				at[q.To] = k
				all, logs = append(all, mean{To: q.To}), append(logs, 0)
			}
			logs[k] += math.Log(q.Value)
			all[k].Rows++
		}
	}
	for k := range all {
		all[k].Value = math.Exp(logs[k] / float64(all[k].Rows))
	}
	return all
}

// Title names what is compared.
func (p page) Title() string {
	switch n := len(p.Names); n {
	case 0:
		return "Carrel's store"
	case 1:
		return "Carrel by itself"
	case 2:
		return "Carrel beside " + p.Names[1]
	default:
		return "Carrel beside " + strings.Join(p.Names[1:n-1], ", ") + " and " + p.Names[n-1]
	}
}

// Colour is the colour of a target on the page.
func (p page) Colour(target string) string { return colour(indexOf(p.Names, target)) }
