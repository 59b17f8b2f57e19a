package datetime

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Format writes t by a layout of strftime(3), with GNU's flags (-, _, 0, ^, #, +), widths, colons before z and %N.
func Format(t time.Time, layout string) string {
	var b strings.Builder
	for layout != "" {
		i := strings.IndexByte(layout, '%')
		if i < 0 || i == len(layout)-1 {
			b.WriteString(layout)
			break
		}
		b.WriteString(layout[:i])
		var d directive
		whole := layout[i:]
		d, layout = parseDirective(layout[i+1:])
		if text, ok := d.format(t); ok {
			b.WriteString(text)
		} else {
			b.WriteString(whole[:len(whole)-len(layout)])
		}
	}
	return b.String()
}

// directive is one %[flags][width]verb.
type directive struct {
	pad    byte // '-', '_', '0', '+' or 0
	upper  bool
	swap   bool
	width  int
	colons int
	verb   byte
}

func parseDirective(f string) (d directive, rest string) {
	for f != "" {
		switch c := f[0]; {
		case c == '-' || c == '_' || c == '+' || c == '0':
			d.pad = c
		case c == '^':
			d.upper = true
		case c == '#':
			d.swap = true
		case c >= '1' && c <= '9':
			i := 0
			for i < len(f) && f[i] >= '0' && f[i] <= '9' {
				i++
			}
			d.width, _ = strconv.Atoi(f[:min(i, 4)])
			f = f[i:]
			continue
		case c == ':':
			d.colons++
		case c == 'E' || c == 'O':
		default:
			d.verb = c
			return d, f[1:]
		}
		f = f[1:]
	}
	return d, ""
}

func (d directive) number(n, width int, pad byte) string {
	if d.pad != 0 && d.pad != '+' {
		pad = d.pad
	}
	if d.width > 0 {
		width = d.width
	}
	switch pad {
	case '-':
		return strconv.Itoa(n)
	case '_':
		return fmt.Sprintf("%*d", width, n)
	}
	return fmt.Sprintf("%0*d", width, n)
}

func (d directive) text(s string) string {
	if d.upper {
		s = strings.ToUpper(s)
	}
	if d.swap {
		if s == strings.ToUpper(s) {
			s = strings.ToLower(s)
		} else {
			s = strings.ToUpper(s)
		}
	}
	fill := " "
	if d.pad == '0' {
		fill = "0"
	}
	return strings.Repeat(fill, max(d.width-len(s), 0)) + s
}

// composite are the directives that stand for others.
var composite = map[byte]string{
	'c': "%a %b %e %H:%M:%S %Y", 'D': "%m/%d/%y", 'F': "%Y-%m-%d", 'r': "%I:%M:%S %p", 'R': "%H:%M", 'T': "%H:%M:%S",
	'x': "%m/%d/%y", 'X': "%H:%M:%S", 'h': "%b",
}

func (d directive) format(t time.Time) (string, bool) {
	if layout, ok := composite[d.verb]; ok {
		return d.text(Format(t, layout)), true
	}
	isoYear, isoWeek := t.ISOWeek()
	hour12 := (t.Hour()+11)%12 + 1
	switch d.verb {
	case '%':
		return "%", true
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	case 'a':
		return d.text(t.Weekday().String()[:3]), true
	case 'A':
		return d.text(t.Weekday().String()), true
	case 'b':
		return d.text(t.Month().String()[:3]), true
	case 'B':
		return d.text(t.Month().String()), true
	case 'p':
		return d.text(t.Format("PM")), true
	case 'P':
		return d.text(t.Format("pm")), true
	case 'Z':
		name, _ := t.Zone()
		return d.text(name), true
	case 'z':
		return d.zone(t), true
	case 'N':
		return d.nanoseconds(t), true
	case 's':
		return d.number(int(t.Unix()), 1, '0'), true
	case 'Y':
		return d.number(t.Year(), 1, '0'), true
	case 'C':
		return d.number(t.Year()/100, 2, '0'), true
	case 'y':
		return d.number(t.Year()%100, 2, '0'), true
	case 'G':
		return d.number(isoYear, 1, '0'), true
	case 'g':
		return d.number(isoYear%100, 2, '0'), true
	case 'V':
		return d.number(isoWeek, 2, '0'), true
	case 'm':
		return d.number(int(t.Month()), 2, '0'), true
	case 'd':
		return d.number(t.Day(), 2, '0'), true
	case 'e':
		return d.number(t.Day(), 2, '_'), true
	case 'H':
		return d.number(t.Hour(), 2, '0'), true
	case 'k':
		return d.number(t.Hour(), 2, '_'), true
	case 'I':
		return d.number(hour12, 2, '0'), true
	case 'l':
		return d.number(hour12, 2, '_'), true
	case 'M':
		return d.number(t.Minute(), 2, '0'), true
	case 'S':
		return d.number(t.Second(), 2, '0'), true
	case 'j':
		return d.number(t.YearDay(), 3, '0'), true
	case 'u':
		return d.number((int(t.Weekday())+6)%7+1, 1, '0'), true
	case 'w':
		return d.number(int(t.Weekday()), 1, '0'), true
	case 'U':
		return d.number((t.YearDay()+6-int(t.Weekday()))/7, 2, '0'), true
	case 'W':
		return d.number((t.YearDay()+6-(int(t.Weekday())+6)%7)/7, 2, '0'), true
	case 'q':
		return d.number((int(t.Month())+2)/3, 1, '0'), true
	}
	return "", false
}

// nanoseconds are cut to the width, as %3N asks.
func (d directive) nanoseconds(t time.Time) string {
	text := fmt.Sprintf("%09d", t.Nanosecond())
	if d.width > 0 && d.width < 9 {
		text = text[:d.width]
	}
	if d.pad == '-' {
		text = strings.TrimRight(text, "0")
	}
	return text
}

func (d directive) zone(t time.Time) string {
	_, offset := t.Zone()
	sign := "+"
	if offset < 0 {
		sign, offset = "-", -offset
	}
	h, m, s := offset/3600, offset/60%60, offset%60
	switch d.colons {
	case 1:
		return fmt.Sprintf("%s%02d:%02d", sign, h, m)
	case 2:
		return fmt.Sprintf("%s%02d:%02d:%02d", sign, h, m, s)
	case 3:
		if m == 0 {
			return fmt.Sprintf("%s%02d", sign, h)
		}
		return fmt.Sprintf("%s%02d:%02d", sign, h, m)
	}
	return fmt.Sprintf("%s%02d%02d", sign, h, m)
}
