package file

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var dfOptions = getopt.New("ahHiklmPt:Tx:B:", "all=a", "human-readable=h", "si=H", "inodes=i", "portability=P", "print-type=T",
	"block-size:=B", "type:=t", "exclude-type:=x", "total", "output::", "local=l", "sync", "no-sync")

const (
	fsName = "carrel"
	fsType = "fuse"
)

// spaceColumn is a column of df.
type spaceColumn struct {
	name  string // of --output
	title string
	least int  // its width
	left  bool // aligned
	cell  func(r *spaceRow) string
}

// spaceRow is a line of df.
type spaceRow struct {
	*spaceTable
	source, file, target string
}

// spaceTable is what a run of df shows.
type spaceTable struct {
	vfs.StatFS
	unit   uint64  // bytes
	human  float64 // 0: in units
	suffix string  // of a number of units
}

func (t *spaceTable) bytes(blocks uint64) string {
	n := blocks * uint64(t.BlockSize)
	if t.human > 0 {
		return tool.Human(n, t.human)
	}
	return tool.BlockSize{Unit: t.unit, Suffix: t.suffix}.Format(n)
}

func (t *spaceTable) count(n uint64) string {
	if t.human > 0 {
		return tool.Human(n, t.human)
	}
	return strconv.FormatUint(n, 10)
}

func percentOf(used, available uint64) string {
	all := used + available
	if all == 0 {
		return "-"
	}
	return strconv.FormatUint((used*100+all-1)/all, 10) + "%"
}

var spaceColumns = []spaceColumn{
	{"source", "Filesystem", 14, true, func(r *spaceRow) string { return r.source }},
	{"fstype", "Type", 4, true, func(*spaceRow) string { return fsType }},
	{"itotal", "Inodes", 5, false, func(r *spaceRow) string { return r.count(r.Files) }},
	{"iused", "IUsed", 5, false, func(r *spaceRow) string { return r.count(r.Files - r.FilesFree) }},
	{"iavail", "IFree", 5, false, func(r *spaceRow) string { return r.count(r.FilesFree) }},
	{"ipcent", "IUse%", 4, false, func(r *spaceRow) string { return percentOf(r.Files-r.FilesFree, r.FilesFree) }},
	{"size", "1K-blocks", 5, false, func(r *spaceRow) string { return r.bytes(r.Blocks) }},
	{"used", "Used", 5, false, func(r *spaceRow) string { return r.bytes(r.Blocks - r.Free) }},
	{"avail", "Available", 5, false, func(r *spaceRow) string { return r.bytes(r.Available) }},
	{"pcent", "Use%", 4, false, func(r *spaceRow) string { return percentOf(r.Blocks-r.Free, r.Available) }},
	{"file", "File", 0, true, func(r *spaceRow) string { return r.file }},
	{"target", "Mounted on", 0, true, func(r *spaceRow) string { return r.target }},
}

// columnsNamed returns columns in the order of their names; ok is false, with the first that is none, when there is one.
func columnsNamed(names ...string) (list []spaceColumn, bad string, ok bool) {
	for _, name := range names {
		i := slices.IndexFunc(spaceColumns, func(c spaceColumn) bool { return c.name == name })
		if i < 0 {
			return nil, name, false
		}
		list = append(list, spaceColumns[i])
	}
	return list, "", true
}

// blocksOf is the title of a column of units.
func blocksOf(unit uint64) string {
	for _, base := range []uint64{1024, 1000} {
		for i, n := 1, base; i <= 5; i, n = i+1, n*base {
			if n == unit {
				return map[uint64]string{1024: "1" + "KMGTP"[i-1:i], 1000: "1" + "kMGTP"[i-1:i] + "B"}[base] + "-blocks"
			}
		}
	}
	return strconv.FormatUint(unit, 10) + "B-blocks"
}

// df has one filesystem to tell of: the workspace's.
func df(ctx context.Context, c *tool.Call) error {
	options, names, err := c.Options(dfOptions, 1)
	if err != nil {
		return err
	}
	t := &spaceTable{unit: 1024}
	var inodes, kind, posix, total bool
	var only, but, output []string
	for _, o := range options {
		switch o.Name {
		case "h":
			t.human = 1024
		case "H":
			t.human = 1000
		case "i":
			inodes = true
		case "k":
			t.unit, t.human = 1024, 0
		case "m":
			t.unit, t.human = 1<<20, 0
		case "P":
			posix = true
		case "T":
			kind = true
		case "t":
			only = append(only, o.Value)
		case "x":
			but = append(but, o.Value)
		case "total":
			total = true
		case "output":
			if output = append(output, strings.Split(o.Value, ",")...); o.Value == "" {
				output = nil
				for _, column := range spaceColumns {
					output = append(output, column.name)
				}
			}
		case "B":
			size, err := c.BlockSize(o)
			if err != nil {
				return err
			}
			t.unit, t.human, t.suffix = size.Unit, size.Human, size.Suffix
		}
	}
	shown := output
	switch {
	case output != nil:
	case inodes:
		shown = []string{"source", "itotal", "iused", "iavail", "ipcent", "target"}
	default:
		shown = []string{"source", "size", "used", "avail", "pcent", "target"}
	}
	if kind && output == nil {
		shown = slices.Insert(shown, 1, "fstype")
	}
	columns, bad, ok := columnsNamed(shown...)
	if !ok {
		return c.Usage(1, "option --output: field '%s' unknown", bad)
	}
	for i := range columns {
		switch title := &columns[i].title; columns[i].name {
		case "size":
			switch {
			case t.human > 0:
				*title = "Size"
			case posix:
				*title = strconv.FormatUint(t.unit, 10) + "-blocks"
			default:
				*title = blocksOf(t.unit)
			}
		case "avail":
			if t.human > 0 || output != nil {
				*title = "Avail"
			}
		case "pcent":
			if posix {
				*title = "Capacity"
			}
		}
	}
	if t.StatFS, err = c.FS.Tree.StatFS(ctx); err != nil {
		return err
	}
	var rows []*spaceRow
	for _, name := range names {
		if _, err := c.FS.Stat(ctx, name); err != nil {
			if err = c.FaultAt(ctx, name, err); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, &spaceRow{t, fsName, name, "/"})
	}
	if len(names) == 0 {
		rows = []*spaceRow{{t, fsName, "-", "/"}}
	}
	if only != nil && !slices.Contains(only, fsType) || slices.Contains(but, fsType) {
		rows = nil
	}
	switch {
	case len(rows) == 0 && c.Status != 0:
		return nil
	case len(rows) == 0:
		return c.Die(1, "no file systems processed")
	case total:
		rows = append(rows, &spaceRow{t, "total", "-", "-"})
	}
	return printSpace(c, columns, rows)
}

func printSpace(c *tool.Call, columns []spaceColumn, rows []*spaceRow) error {
	lines := make([]strings.Builder, len(rows)+1)
	for i, column := range columns {
		cells := []string{column.title}
		for _, r := range rows {
			cells = append(cells, column.cell(r))
		}
		width := column.least
		for _, cell := range cells {
			width = max(width, len(cell))
		}
		for n, cell := range cells {
			if i > 0 {
				lines[n].WriteByte(' ')
			}
			switch {
			case !column.left:
				fmt.Fprintf(&lines[n], "%*s", width, cell)
			case i == len(columns)-1:
				lines[n].WriteString(cell)
			default:
				fmt.Fprintf(&lines[n], "%-*s", width, cell)
			}
		}
	}
	for i := range lines {
		if _, err := c.Out.WriteString(lines[i].String() + "\n"); err != nil {
			return err
		}
	}
	return nil
}
