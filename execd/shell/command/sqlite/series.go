package sqlite

import (
	"errors"
	"fmt"
	"math"

	"github.com/ncruces/go-sqlite3"
)

// registerSeries adds generate_series(start, stop, step), a table of numbers.
func registerSeries(conn *sqlite3.Conn) error {
	//lint:ignore SA1019 the method that takes its place needs Go 1.27
	return sqlite3.CreateModule(conn, "generate_series", nil,
		func(conn *sqlite3.Conn, _, _, _ string, _ ...string) (series, error) {
			return series{}, conn.DeclareVTab("CREATE TABLE x(value, start HIDDEN, stop HIDDEN, step HIDDEN)")
		})
}

// series is the table. Its arguments are its hidden columns, which a query compares.
type series struct{}

// BestIndex implements sqlite3.VTab: a plan's number says which of the arguments there are, a bit for each, in their order.
func (series) BestIndex(info *sqlite3.IndexInfo) error {
	var at [3]int // of the constraint for each argument, from 1
	for i, c := range info.Constraint {
		switch {
		case c.Column < 1 || c.Column > 3 || c.Op != sqlite3.INDEX_CONSTRAINT_EQ:
		case !c.Usable:
			return sqlite3.CONSTRAINT
		default:
			at[c.Column-1] = i + 1
		}
	}
	if at[0] == 0 {
		return errors.New(`first argument to "generate_series()" missing or unusable`)
	}
	n := 0
	for bit, i := range at {
		if i > 0 {
			n++
			info.ConstraintUsage[i-1] = sqlite3.IndexConstraintUsage{ArgvIndex: n, Omit: true}
			info.IdxNum |= 1 << bit
		}
	}
	info.EstimatedCost, info.EstimatedRows = 2, 1000
	return nil
}

// Open implements sqlite3.VTab.
func (series) Open() (sqlite3.VTabCursor, error) { return &seriesCursor{}, nil }

type seriesCursor struct {
	start, stop, step int64
	value             int64
	row               int64
	done              bool
}

// Filter implements sqlite3.VTabCursor. A NULL makes a series of nothing.
func (c *seriesCursor) Filter(which int, _ string, args ...sqlite3.Value) error {
	*c = seriesCursor{stop: math.MaxUint32, step: 1}
	for bit, to := range []*int64{&c.start, &c.stop, &c.step} {
		if which&(1<<bit) == 0 {
			continue
		}
		if args[0].Type() == sqlite3.NULL {
			c.done = true
		}
		*to, args = args[0].Int64(), args[1:]
	}
	if c.step == 0 {
		c.step = 1
	}
	c.value = c.start
	c.done = c.done || c.over()
	return nil
}

func (c *seriesCursor) over() bool {
	if c.step > 0 {
		return c.value > c.stop
	}
	return c.value < c.stop
}

// Next implements sqlite3.VTabCursor.
func (c *seriesCursor) Next() error {
	next := c.value + c.step
	c.done = (next > c.value) != (c.step > 0) // past the largest number
	c.value = next
	c.row++
	c.done = c.done || c.over()
	return nil
}

// EOF implements sqlite3.VTabCursor.
func (c *seriesCursor) EOF() bool { return c.done }

// Column implements sqlite3.VTabCursor.
func (c *seriesCursor) Column(ctx sqlite3.Context, n int) error {
	values := []int64{c.value, c.start, c.stop, c.step}
	if n >= len(values) {
		return fmt.Errorf("no column %d", n)
	}
	ctx.ResultInt64(values[n])
	return nil
}

// RowID implements sqlite3.VTabCursor.
func (c *seriesCursor) RowID() (int64, error) { return c.row + 1, nil }
