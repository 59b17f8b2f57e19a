package file

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command/datetime"
	"github.com/carrelfs/carrel/execd/shell/command/mode"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

func (l *lister) print(ctx context.Context, entries []entry, directory bool) error {
	if directory && (l.format == 'l' || l.blocks) {
		total := uint64(0)
		for _, e := range entries {
			total += e.attr.Blocks
		}
		fmt.Fprintf(l.Out, "total %s\n", l.blockText(total))
	}
	switch l.format {
	case 'l':
		return l.long(ctx, entries)
	case 'C', 'x':
		return l.columns(entries)
	case 'm':
		return l.commas(entries)
	}
	for _, e := range entries {
		if _, err := l.Out.WriteString(l.cell(e) + l.end); err != nil {
			return err
		}
	}
	return nil
}

func (l *lister) blockText(blocks uint64) string {
	if l.human > 0 {
		return tool.Human(blocks*512, l.human)
	}
	if l.size.Unit > 0 {
		return l.size.Format(blocks * 512)
	}
	return strconv.FormatUint((blocks+1)/2, 10)
}

func (l *lister) sizeText(a vfs.Attr) string {
	if a.Type == vfs.TypeCharDev || a.Type == vfs.TypeBlockDev {
		major, minor := deviceNumber(a.Rdev)
		return fmt.Sprintf("%d, %3d", major, minor)
	}
	if l.human > 0 {
		return tool.Human(a.Size, l.human)
	}
	if l.size.Unit > 0 {
		return l.size.Format(a.Size)
	}
	return strconv.FormatUint(a.Size, 10)
}

// deviceNumber splits the kernel's 32-bit encoding.
func deviceNumber(rdev uint32) (major, minor uint32) {
	return rdev >> 8 & 0xfff, rdev&0xff | rdev>>12&0xfff00
}

// cell is what stands for an entry where lines are not long.
func (l *lister) cell(e entry) string {
	text := ""
	if l.inode {
		text = strconv.FormatUint(uint64(e.attr.Ino), 10) + " "
	}
	if l.blocks {
		text += l.blockText(e.attr.Blocks) + " "
	}
	return text + l.name(e.name, e.attr) + l.indicator(e.attr)
}

// name is a name with what color and quoting ask for.
func (l *lister) name(name string, a vfs.Attr) string {
	switch l.quote {
	case 'Q':
		name = strconv.Quote(name)
	case 'b':
		quoted := strconv.Quote(name)
		name = strings.ReplaceAll(quoted[1:len(quoted)-1], " ", `\ `)
	}
	if l.color {
		if code := colorOf(a); code != "" {
			return "\x1b[" + code + "m" + name + "\x1b[0m"
		}
	}
	return name
}

func colorOf(a vfs.Attr) string {
	switch {
	case a.Type == vfs.TypeDir:
		return "01;34"
	case a.Type == vfs.TypeSymlink:
		return "01;36"
	case a.Type == vfs.TypeFIFO:
		return "33"
	case a.Type == vfs.TypeRegular && a.Mode&0o111 != 0:
		return "01;32"
	}
	return ""
}

func (l *lister) indicator(a vfs.Attr) string {
	if l.classify == 0 || l.classify == 'p' && a.Type != vfs.TypeDir {
		return ""
	}
	switch a.Type {
	case vfs.TypeDir:
		return "/"
	case vfs.TypeSymlink:
		return "@"
	case vfs.TypeFIFO:
		return "|"
	case vfs.TypeSocket:
		return "="
	case vfs.TypeRegular:
		if a.Mode&0o111 != 0 && l.classify == 'F' {
			return "*"
		}
	}
	return ""
}

// long prints the columns of ls -l, each as wide as its widest.
func (l *lister) long(ctx context.Context, entries []entry) error {
	var rows [][]string
	zone := l.Zone(ctx)
	for _, e := range entries {
		a := e.attr
		user, group := strconv.FormatUint(uint64(a.UID), 10), strconv.FormatUint(uint64(a.GID), 10)
		if !l.numeric {
			user, _ = l.names.User(a.UID)
			group, _ = l.names.Group(a.GID)
		}
		rows = append(rows, []string{strconv.FormatUint(uint64(a.Ino), 10), l.blockText(a.Blocks), mode.String(a),
			strconv.FormatUint(uint64(a.Nlink), 10), user, group, l.sizeText(a), l.timeText(a, zone)})
	}
	show := []bool{l.inode, l.blocks, true, true, l.owner, l.group, true, true}
	right := []bool{true, true, false, true, false, false, true, false}
	widths := make([]int, len(show))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for n, row := range rows {
		for i, cell := range row {
			if !show[i] {
				continue
			}
			pad := strings.Repeat(" ", widths[i]-len(cell))
			if right[i] {
				_, _ = l.Out.WriteString(pad + cell + " ")
			} else {
				_, _ = l.Out.WriteString(cell + pad + " ")
			}
		}
		if err := l.longName(entries[n]); err != nil {
			return err
		}
	}
	return nil
}

func (l *lister) longName(e entry) error {
	text := l.name(e.name, e.attr)
	if e.attr.Type == vfs.TypeSymlink {
		text += " -> " + l.name(e.target, e.linked) + l.indicator(e.linked)
	} else {
		text += l.indicator(e.attr)
	}
	_, err := l.Out.WriteString(text + l.end)
	return err
}

// halfYear is how old a time is before its year is worth more than its hour: half of an average Gregorian year.
const halfYear = 31556952 * time.Second / 2

func (l *lister) timeText(a vfs.Attr, zone *time.Location) string {
	t := l.when(a).Go().In(zone)
	age := l.Now().Sub(t)
	recent := age >= 0 && age < halfYear
	switch {
	case l.style == "full-iso":
		return datetime.Format(t, "%Y-%m-%d %H:%M:%S.%N %z")
	case l.style == "long-iso":
		return datetime.Format(t, "%Y-%m-%d %H:%M")
	case l.style == "iso" && recent:
		return datetime.Format(t, "%m-%d %H:%M")
	case l.style == "iso":
		return datetime.Format(t, "%Y-%m-%d ")
	case strings.HasPrefix(l.style, "+"):
		old, new, two := strings.Cut(l.style[1:], "\n")
		if two && recent {
			old = new
		}
		return datetime.Format(t, old)
	case recent:
		return datetime.Format(t, "%b %e %H:%M")
	}
	return datetime.Format(t, "%b %e  %Y")
}

// columns fills lines up to the width: downwards for -C, across for -x.
func (l *lister) columns(entries []entry) error {
	cells := make([]string, len(entries))
	for i, e := range entries {
		cells[i] = l.cell(e)
	}
	rows, widths := layOut(cells, l.width, l.format == 'x')
	for row := range rows {
		column := 0
		for i := range widths {
			at := i*rows + row
			if l.format == 'x' {
				at = row*len(widths) + i
			}
			if at >= len(cells) {
				break
			}
			_, _ = l.Out.WriteString(strings.Repeat(" ", column) + cells[at])
			column = widths[i] - len([]rune(cells[at]))
		}
		if err := l.Out.WriteByte('\n'); err != nil {
			return err
		}
	}
	return nil
}

// layOut finds the most columns that fit, and their widths.
func layOut(cells []string, width int, across bool) (rows int, widths []int) {
	for columns := min(len(cells), max(width/3, 1)); columns > 0; columns-- {
		rows = (len(cells) + columns - 1) / columns
		if !across && (len(cells)+rows-1)/rows != columns {
			continue
		}
		widths = make([]int, columns)
		for i, cell := range cells {
			at := i / rows
			if across {
				at = i % columns
			}
			widths[at] = max(widths[at], len([]rune(cell))+2)
		}
		total := 0
		for _, w := range widths {
			total += w
		}
		if total-2 < width || columns == 1 {
			return rows, widths
		}
	}
	return 0, nil
}

func (l *lister) commas(entries []entry) error {
	column := 0
	for i, e := range entries {
		cell := l.cell(e)
		if i > 0 {
			if column+len(cell)+2 >= l.width {
				_, _ = l.Out.WriteString(",\n")
				column = 0
			} else {
				_, _ = l.Out.WriteString(", ")
				column += 2
			}
		}
		column += len(cell)
		_, _ = l.Out.WriteString(cell)
	}
	if len(entries) == 0 {
		return nil
	}
	return l.Out.WriteByte('\n')
}
