package file

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/datetime"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/mode"
	"github.com/carrelfs/carrel/execd/shell/command/printf"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var statOptions = getopt.New("Lfc:t", "dereference=L", "file-system=f", "format:=c", "printf:", "terse=t", "cached:")

const (
	defaultStat = "  File: %N\n  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F\nDevice: %Hd,%Ld\tInode: %-11i Links: %h\n" +
		"Access: (%04a/%10.10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)\nAccess: %x\nModify: %y\nChange: %z\n Birth: %w\n"
	deviceStat = "  File: %N\n  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F\nDevice: %Hd,%Ld\tInode: %-11i Links: %-5h Device type: %Hr,%Lr\n" +
		"Access: (%04a/%10.10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)\nAccess: %x\nModify: %y\nChange: %z\n Birth: %w\n"
	terseStat     = "%n %s %b %f %u %g %D %i %h %t %T %X %Y %Z %W %o\n"
	defaultStatFS = "  File: \"%n\"\n    ID: %-8i Namelen: %-7l Type: %T\nBlock size: %-10s Fundamental block size: %S\n" +
		"Blocks: Total: %-10b Free: %-10f Available: %a\nInodes: Total: %-10c Free: %d\n"
)

func stat(ctx context.Context, c *tool.Call) error {
	options, names, err := c.Options(statOptions, 1)
	if err != nil {
		return err
	}
	follow, system, terse, layout := false, false, false, ""
	for _, o := range options {
		switch o.Name {
		case "L":
			follow = true
		case "f":
			system = true
		case "t":
			terse = true
		case "c":
			layout = o.Value + "\n"
		case "printf":
			layout = printfEscapes(o.Value)
		}
	}
	if len(names) == 0 {
		return c.Usage(1, "missing operand")
	}
	for _, name := range names {
		look := c.FS.Lstat
		if follow {
			look = c.FS.Stat
		}
		a, err := look(ctx, name)
		if err != nil {
			c.Fault("cannot statx '%s': %s", name, command.Reason(err))
			continue
		}
		s := &statter{Call: c, ctx: ctx, name: name, attr: a, names: c.Accounts(ctx)}
		if err := s.show(layout, terse, system); err != nil {
			return err
		}
	}
	return nil
}

// printfEscapes reads the escapes of --printf, but for the percent signs.
func printfEscapes(text string) string {
	var b strings.Builder
	for text != "" {
		i := strings.IndexByte(text, '\\')
		if i < 0 {
			b.WriteString(text)
			break
		}
		b.WriteString(text[:i])
		out, rest, _ := printf.Escape(text[i:], false)
		b.WriteString(out)
		text = rest
	}
	return b.String()
}

// statter prints one node.
type statter struct {
	*tool.Call
	ctx   context.Context
	name  string
	attr  vfs.Attr
	names *tool.Accounts
}

func (s *statter) show(layout string, terse, system bool) error {
	value := s.value
	if system {
		st, err := s.FS.Tree.StatFS(s.ctx)
		if err != nil {
			return err
		}
		value = func(verb byte, _ byte) (string, bool) { return s.systemValue(st, verb) }
		if layout == "" {
			layout = defaultStatFS
		}
	}
	switch {
	case layout != "":
	case terse:
		layout = terseStat
	case s.attr.Type == vfs.TypeCharDev || s.attr.Type == vfs.TypeBlockDev:
		layout = deviceStat
	default:
		layout = defaultStat
	}
	for layout != "" {
		i := strings.IndexByte(layout, '%')
		if i < 0 || i == len(layout)-1 {
			break
		}
		_, _ = s.Out.WriteString(layout[:i])
		layout = s.directive(layout[i+1:], value)
	}
	_, err := s.Out.WriteString(layout)
	return err
}

// directive prints one %[flags][width][.precision][H|L]verb and returns what follows it.
func (s *statter) directive(f string, value func(verb, half byte) (string, bool)) string {
	end := 0
	for end < len(f) && strings.IndexByte("-+ #0'123456789.", f[end]) >= 0 {
		end++
	}
	flags, rest := f[:end], f[end:]
	half := byte(0)
	if len(rest) > 1 && (rest[0] == 'H' || rest[0] == 'L') && strings.IndexByte("dr", rest[1]) >= 0 {
		half, rest = rest[0], rest[1:]
	}
	if rest == "" {
		_, _ = s.Out.WriteString("%" + flags)
		return ""
	}
	if rest[0] == '%' {
		_ = s.Out.WriteByte('%')
		return rest[1:]
	}
	text, ok := value(rest[0], half)
	if !ok {
		text = "?"
	}
	verb := "s"
	if strings.HasPrefix(flags, "0") || strings.Contains(flags, "-0") {
		text = strings.Repeat("0", max(widthOf(flags)-len(text), 0)) + text
		flags = ""
	}
	flags = strings.NewReplacer("#", "", "'", "", "+", "").Replace(flags)
	fmt.Fprintf(s.Out, "%"+flags+verb, text)
	return rest[1:]
}

func widthOf(flags string) int {
	n, _ := strconv.Atoi(strings.TrimLeft(strings.SplitN(flags, ".", 2)[0], "-+ #0'"))
	return n
}

func (s *statter) value(verb, half byte) (string, bool) {
	a := s.attr
	switch verb {
	case 'a':
		return strconv.FormatUint(uint64(a.Mode), 8), true
	case 'A':
		return mode.String(a), true
	case 'b':
		return strconv.FormatUint(a.Blocks, 10), true
	case 'B':
		return "512", true
	case 'C':
		return "?", true
	case 'd', 'D':
		return map[byte]string{'H': "0", 'L': "1", 0: "1"}[half], true
	case 'f':
		return strconv.FormatUint(uint64(mode.Format(a.Type)|a.Mode), 16), true
	case 'F':
		return mode.Words(a), true
	case 'h':
		return strconv.FormatUint(uint64(a.Nlink), 10), true
	case 'i':
		return strconv.FormatUint(uint64(a.Ino), 10), true
	case 'm':
		return "/", true
	case 'n':
		return s.name, true
	case 'N':
		return s.quoted(), true
	case 'o':
		return "4096", true
	case 's':
		return strconv.FormatUint(a.Size, 10), true
	case 'r', 't', 'T':
		major, minor := deviceNumber(a.Rdev)
		if verb == 'T' || half == 'L' {
			major = minor
		}
		return strconv.FormatUint(uint64(major), map[bool]int{true: 10, false: 16}[verb == 'r']), true
	case 'u':
		return strconv.FormatUint(uint64(a.UID), 10), true
	case 'U':
		name, known := s.names.User(a.UID)
		return unknown(name, known), true
	case 'g':
		return strconv.FormatUint(uint64(a.GID), 10), true
	case 'G':
		name, known := s.names.Group(a.GID)
		return unknown(name, known), true
	}
	return s.timeValue(verb)
}

func unknown(name string, known bool) string {
	if known {
		return name
	}
	return "UNKNOWN"
}

func (s *statter) timeValue(verb byte) (string, bool) {
	switch verb {
	case 'w':
		return "-", true
	case 'W':
		return "0", true
	}
	when, ok := map[byte]vfs.Time{'x': s.attr.Atime, 'y': s.attr.Mtime, 'z': s.attr.Ctime}[verb|0x20]
	if !ok {
		return "", false
	}
	if verb < 'a' {
		sec, _ := when.Unix()
		return strconv.FormatInt(sec, 10), true
	}
	return datetime.Format(when.Go().In(s.Zone(s.ctx)), "%Y-%m-%d %H:%M:%S.%N %z"), true
}

func (s *statter) quoted() string {
	text := s.name
	if s.attr.Type == vfs.TypeSymlink {
		target, _ := s.FS.Readlink(s.ctx, s.name)
		return text + " -> " + target
	}
	return text
}

func (s *statter) systemValue(st vfs.StatFS, verb byte) (string, bool) {
	n := uint64(0)
	switch verb {
	case 'n':
		return s.name, true
	case 'T':
		return "fuseblk", true
	case 't':
		return "65735546", true
	case 'i':
		return "0", true
	case 'l':
		n = vfs.MaxNameLen
	case 's', 'S':
		n = uint64(st.BlockSize)
	case 'b':
		n = st.Blocks
	case 'f':
		n = st.Free
	case 'a':
		n = st.Available
	case 'c':
		n = st.Files
	case 'd':
		n = st.FilesFree
	default:
		return "", false
	}
	return strconv.FormatUint(n, 10), true
}
