package search

import (
	"bufio"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/datetime"
	"github.com/carrelfs/carrel/execd/shell/command/mode"
	"github.com/carrelfs/carrel/execd/shell/command/printf"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

func (f *finder) printer(out *bufio.Writer, end string) predicate {
	return func(n *found) (bool, error) {
		_, _ = out.WriteString(n.path)
		_, err := out.WriteString(end)
		return true, err
	}
}

// sink is a file that -fprint and its like write to.
type sink struct {
	file *treepath.File
	out  *bufio.Writer
}

// output opens a file to write to, once for all actions that name it.
func (f *finder) output(name string) (*bufio.Writer, error) {
	if s, ok := f.sinks[name]; ok {
		return s.out, nil
	}
	file, err := f.FS.CreateFile(f.ctx, name)
	if err != nil {
		if tool.Ends(f.ctx, err) {
			return nil, err
		}
		return nil, f.Die(1, "'%s': %s", name, command.Reason(err))
	}
	if f.sinks == nil {
		f.sinks = map[string]sink{}
	}
	s := sink{file, bufio.NewWriter(file)}
	f.sinks[name] = s
	return s.out, nil
}

// closeSinks writes out and closes the files of output.
func (f *finder) closeSinks() error {
	var all error
	for _, s := range f.sinks {
		all = errors.Join(all, s.out.Flush(), s.file.Close())
	}
	return all
}

// toFile is -fprint, -fprint0, -fls and -fprintf.
func (p *findParser) toFile(name, arg string) (predicate, error) {
	out, err := p.output(arg)
	if err != nil {
		return nil, err
	}
	p.acts = true
	switch name {
	case "-fprint":
		return p.printer(out, "\n"), nil
	case "-fprint0":
		return p.printer(out, "\x00"), nil
	case "-fls":
		return p.lister(out), nil
	}
	if len(p.args) == 0 {
		return nil, p.syntaxError("missing argument to `%s'", name)
	}
	format := p.args[0]
	p.args = p.args[1:]
	return p.formatted(out, format)
}

// remover is -delete: it fails for a directory that is not empty.
func (f *finder) remover() predicate {
	return func(n *found) (bool, error) {
		if n.path == "." {
			return true, nil
		}
		if err := f.FS.Remove(f.ctx, n.path); err != nil {
			if tool.Ends(f.ctx, err) {
				return false, err
			}
			f.Fault("cannot delete '%s': %s", n.path, command.Reason(err))
			return false, nil
		}
		return true, nil
	}
}

func (f *finder) empty() predicate {
	return func(n *found) (bool, error) {
		switch n.attr.Type {
		case vfs.TypeRegular:
			return n.attr.Size == 0, nil
		case vfs.TypeDir:
			entries, err := f.FS.ReadDir(f.ctx, n.path)
			return err == nil && len(entries) == 0, nil
		}
		return false, nil
	}
}

// exec reads a command up to ";", or up to "{} +".
func (p *findParser) exec(name string) (predicate, error) {
	var args []string
	for i, arg := range p.args {
		if arg == ";" {
			p.args = p.args[i+1:]
			if len(args) == 0 {
				return nil, p.syntaxError("invalid argument `;' to `%s'", name)
			}
			return p.execEach(name, args), nil
		}
		if arg == "+" && len(args) > 1 && args[len(args)-1] == "{}" {
			p.args = p.args[i+1:]
			return p.execBatch(name, args[:len(args)-1]), nil
		}
		args = append(args, arg)
	}
	return nil, p.syntaxError("missing argument to `%s'", name)
}

func (p *findParser) execEach(name string, args []string) predicate {
	f := p.finder
	inDir, ask := strings.HasSuffix(name, "dir"), strings.HasPrefix(name, "-ok")
	return func(n *found) (bool, error) {
		subject, dir := n.path, ""
		if inDir {
			subject, dir = "./"+path.Base(n.path), path.Dir(n.path)
		}
		filled := make([]string, len(args))
		for i, arg := range args {
			filled[i] = strings.ReplaceAll(arg, "{}", subject)
		}
		if ask {
			fmt.Fprintf(f.Stderr, "< %s ... %s > ? ", args[0], n.path)
			if yes, err := f.answer(); err != nil || !yes {
				return false, err
			}
		}
		return f.run(filled, dir)
	}
}

func (f *finder) answer() (bool, error) {
	lines := make([]byte, 0, 16)
	in := f.Standard(f.ctx)
	for {
		var b [1]byte
		n, err := in.Read(b[:])
		if n == 0 || b[0] == '\n' {
			if f.ctx.Err() != nil {
				return false, err
			}
			return len(lines) > 0 && lines[0]|0x20 == 'y', nil
		}
		if len(lines) < cap(lines) {
			lines = append(lines, b[0])
		}
	}
}

func (p *findParser) execBatch(name string, args []string) predicate {
	f := p.finder
	b := &batch{finder: f, args: args}
	f.batches = append(f.batches, b)
	if !strings.HasSuffix(name, "dir") {
		return func(n *found) (bool, error) { return true, b.add(n.path) }
	}
	return func(n *found) (bool, error) {
		if dir := path.Dir(n.path); dir != b.dir {
			if err := b.flush(); err != nil {
				return false, err
			}
			b.dir = dir
		}
		return true, b.add("./" + path.Base(n.path))
	}
}

// lister is -ls.
func (f *finder) lister(out *bufio.Writer) predicate {
	return func(n *found) (bool, error) {
		a := n.attr
		user, _ := f.names.User(a.UID)
		group, _ := f.names.Group(a.GID)
		t := a.Mtime.Go().In(f.zone)
		layout := "%b %e %H:%M"
		if age := f.now.Sub(t); age > 182*24*time.Hour || age < 0 {
			layout = "%b %e  %Y"
		}
		name := n.path
		if a.Type == vfs.TypeSymlink {
			target, _ := f.FS.Readlink(f.ctx, n.path)
			name += " -> " + target
		}
		_, err := fmt.Fprintf(out, "%9d %6d %s %3d %-8s %-8s %8d %s %s\n", a.Ino, (a.Blocks+1)/2, mode.String(a), a.Nlink,
			user, group, a.Size, datetime.Format(t, layout), name)
		return true, err
	}
}

func (p *findParser) printf(_, format string) (predicate, error) { return p.formatted(p.Out, format) }

// formatted reads a format once, into the parts that print it.
func (p *findParser) formatted(out *bufio.Writer, format string) (predicate, error) {
	f := p.finder
	f.acts = true
	var parts []func(n *found) string
	literal := func(text string) {
		parts = append(parts, func(*found) string { return text })
	}
	for format != "" {
		switch c := format[0]; {
		case c == '\\':
			text, rest, stop := printf.Escape(format, false)
			if strings.HasPrefix(format, `\c`) {
				text, rest, stop = "", "", true
			}
			literal(text)
			if format = rest; stop {
				format = ""
			}
		case c == '%' && len(format) > 1:
			part, rest, err := p.directive(format[1:])
			if err != nil {
				return nil, err
			}
			parts, format = append(parts, part), rest
		default:
			end := strings.IndexAny(format[1:], `\%`) + 1
			if end == 0 {
				end = len(format)
			}
			literal(format[:end])
			format = format[end:]
		}
	}
	return func(n *found) (bool, error) {
		for _, part := range parts {
			if _, err := out.WriteString(part(n)); err != nil {
				return false, err
			}
		}
		return true, nil
	}, nil
}

// directive reads one %[flags][width][.precision]X.
func (p *findParser) directive(format string) (part func(n *found) string, rest string, err error) {
	f := p.finder
	end := 0
	for end < len(format) && strings.IndexByte("-+ #0123456789.", format[end]) >= 0 {
		end++
	}
	if end == len(format) {
		return nil, "", p.syntaxError("unterminated format")
	}
	flags, verb := format[:end], format[end]
	rest = format[end+1:]
	layout := ""
	if strings.IndexByte("ACT", verb) >= 0 && rest != "" {
		layout, rest = rest[:1], rest[1:]
	}
	return func(n *found) string {
		text := f.field(n, verb, layout)
		if flags == "" {
			return text
		}
		return fmt.Sprintf("%"+strings.NewReplacer("+", "", "#", "").Replace(flags)+"s", text)
	}, rest, nil
}

func (f *finder) field(n *found, verb byte, layout string) string {
	a := n.attr
	switch verb {
	case '%':
		return "%"
	case 'p':
		return n.path
	case 'f':
		if trimmed := strings.TrimRight(n.path, "/"); trimmed != "" {
			return trimmed[strings.LastIndexByte(trimmed, '/')+1:]
		}
		return n.path
	case 'h':
		if i := strings.LastIndexByte(strings.TrimRight(n.path, "/"), '/'); i >= 0 {
			return n.path[:i]
		}
		return "."
	case 'H':
		return n.start
	case 'P':
		return strings.TrimPrefix(strings.TrimPrefix(n.path, n.start), "/")
	case 'd':
		return strconv.Itoa(n.depth)
	case 's':
		return strconv.FormatUint(a.Size, 10)
	case 'k':
		return strconv.FormatUint((a.Blocks+1)/2, 10)
	case 'b':
		return strconv.FormatUint(a.Blocks, 10)
	case 'i':
		return strconv.FormatUint(uint64(a.Ino), 10)
	case 'n':
		return strconv.FormatUint(uint64(a.Nlink), 10)
	case 'm':
		return strconv.FormatUint(uint64(a.Mode), 8)
	case 'M':
		return mode.String(a)
	case 'y', 'Y':
		return f.typeLetter(n, verb)
	case 'u':
		name, _ := f.names.User(a.UID)
		return name
	case 'g':
		name, _ := f.names.Group(a.GID)
		return name
	case 'U':
		return strconv.FormatUint(uint64(a.UID), 10)
	case 'G':
		return strconv.FormatUint(uint64(a.GID), 10)
	case 'l':
		target, _ := f.FS.Readlink(f.ctx, n.path)
		return target
	case 'D':
		return "1"
	case 'F':
		return "fuse"
	}
	return f.timeField(n, verb, layout)
}

func (f *finder) typeLetter(n *found, verb byte) string {
	a := n.attr
	if verb == 'Y' && a.Type == vfs.TypeSymlink {
		to, err := f.FS.Stat(f.ctx, n.path)
		if err != nil {
			return "N"
		}
		a = to
	}
	if letter := mode.Letter(a.Type); letter != '-' {
		return string(letter)
	}
	return "f"
}

func (f *finder) timeField(n *found, verb byte, layout string) string {
	t := n.when(verb | 0x20).Go().In(f.zone)
	switch {
	case strings.IndexByte("act", verb) >= 0:
		return datetime.Format(t, "%a %b %e %H:%M:%S.%N0 %Y")
	case strings.IndexByte("ACT", verb) < 0:
		return "%" + string(verb)
	}
	switch layout {
	case "@":
		return datetime.Format(t, "%s.%N0")
	case "S":
		return datetime.Format(t, "%S.%N0")
	case "T", "+", "X":
		prefix := map[string]string{"+": "%Y-%m-%d+"}[layout]
		return datetime.Format(t, prefix+"%H:%M:%S.%N0")
	}
	return datetime.Format(t, "%"+layout)
}
