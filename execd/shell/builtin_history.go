package shell

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
)

// builtinHistory shows, changes, reads and writes the list of commands.
func (sh *shell) builtinHistory(args []string) int {
	args = args[1:]
	file := byte(0) // of -anrw
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		opt := args[0]
		args = args[1:]
		if opt == "--" {
			break
		}
		for i := 1; i < len(opt); i++ {
			switch c := opt[i]; c {
			case 'c':
				sh.history = history{}
				if len(args) == 0 && i+1 == len(opt) {
					return 0
				}
			case 'd':
				offset := opt[i+1:]
				if offset == "" {
					if len(args) == 0 {
						sh.warnf("history: -d: option requires an argument")
						sh.usage("history")
						return 2
					}
					offset = args[0]
				}
				return sh.deleteHistory(offset)
			case 'a', 'n', 'r', 'w':
				file = c
			case 'p':
				return sh.printExpanded(args)
			case 's':
				sh.dropOwn()
				if len(args) > 0 {
					sh.addHistory(strings.Join(args, " "))
				}
				return 0
			default:
				return sh.badOption("history", "-"+string(c))
			}
		}
	}
	if file != 0 {
		return sh.historyFile(file, args)
	}
	return sh.showHistory(args)
}

func (sh *shell) showHistory(args []string) int {
	h := sh.history
	from := 0
	if len(args) > 1 {
		sh.warnf("history: too many arguments")
		return 1
	}
	if len(args) == 1 {
		n, err := strconv.Atoi(args[0])
		if err != nil {
			sh.warnf("history: %s: numeric argument required", args[0])
			return 1
		}
		from = max(len(h.lines)-max(n, -n), 0)
	}
	var b strings.Builder
	for i := from; i < len(h.lines); i++ {
		fmt.Fprintf(&b, "%5d  %s\n", h.gone+i+1, h.lines[i])
	}
	return sh.print(b.String())
}

// deleteHistory is history -d: a number, one from the end, or a range of either.
func (sh *shell) deleteHistory(offset string) int {
	h := sh.history
	place := func(text string) (int, bool) {
		n, err := strconv.Atoi(text)
		switch {
		case err != nil:
			return 0, false
		case n < 0:
			n += len(h.lines)
		default:
			n -= h.gone + 1
		}
		return n, n >= 0 && n < len(h.lines)
	}
	first, last := offset, offset
	if i := strings.IndexByte(strings.TrimPrefix(offset, "-"), '-'); i >= 0 {
		i += len(offset) - len(strings.TrimPrefix(offset, "-"))
		first, last = offset[:i], offset[i+1:]
	}
	i, ok := place(first)
	j, okLast := place(last)
	if !ok || !okLast || j < i {
		sh.warnf("history: %s: history position out of range", offset)
		return 1
	}
	sh.history = h.without(i, j+1)
	return 0
}

// historyFile is history -a, -n, -r and -w.
func (sh *shell) historyFile(how byte, args []string) int {
	name := sh.getOr("HISTFILE", "")
	if len(args) > 0 {
		name = args[0]
	}
	if name == "" {
		return 0
	}
	h := &sh.history
	switch how {
	case 'r', 'n':
		data, err := sh.fs().ReadFile(sh.ctx, name, maxHistory*maxHistoryLine)
		if err != nil {
			sh.warnf("history: %s: cannot read: %s", name, command.Reason(err))
			return 1
		}
		size := sh.historySize()
		for line := range strings.SplitSeq(strings.TrimRight(string(data), "\n"), "\n") {
			if line != "" {
				sh.history = sh.history.with(line, size)
			}
		}
		h.saved = len(h.lines)
		return 0
	}
	lines, flag := h.lines, treepath.Write|treepath.Create|treepath.Truncate
	if how == 'a' {
		if lines, flag = h.lines[h.saved:], treepath.Write|treepath.Create|treepath.Append; len(lines) == 0 {
			return 0
		}
	}
	f, err := sh.fs().OpenFile(sh.ctx, name, flag, 0o600)
	if err == nil {
		_, err = f.Write([]byte(strings.Join(append(slices.Clip(lines), ""), "\n")))
		if closed := f.Close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		sh.warnf("history: %s: cannot write: %s", name, command.Reason(err))
		return 1
	}
	h.saved = len(h.lines)
	return 0
}

// printExpanded is history -p: what the arguments would be on a line of an interactive shell.
func (sh *shell) printExpanded(args []string) int {
	sh.dropOwn()
	status := 0
	for _, a := range args {
		text, ok := sh.history.expand(a)
		if !ok {
			sh.warnf("history: %s: history expansion failed", a)
			status = 1
			continue
		}
		sh.print(text + "\n")
	}
	return status
}

// expand replaces history references: an event (!!, !n, !-n, !text, !?text?, !$) and the words of it that are wanted (:n,
// :n-m, :^, :$, :*).
func (h history) expand(text string) (string, bool) {
	var b strings.Builder
	for text != "" {
		i := strings.IndexByte(text, '!')
		if i < 0 || i+1 == len(text) || strings.IndexByte(" \t\n=(", text[i+1]) >= 0 {
			if i < 0 {
				i = len(text) - 1
			}
			b.WriteString(text[:i+1])
			text = text[i+1:]
			continue
		}
		if i > 0 && text[i-1] == '\\' {
			b.WriteString(text[:i-1] + "!")
			text = text[i+1:]
			continue
		}
		b.WriteString(text[:i])
		event, rest, ok := h.event(text[i+1:])
		if !ok {
			return "", false
		}
		words, rest, ok := designated(event, rest)
		if !ok {
			return "", false
		}
		b.WriteString(words)
		text = rest
	}
	return b.String(), true
}

// event finds the line that a reference, without its "!", means.
func (h history) event(text string) (line, rest string, ok bool) {
	last := len(h.lines) - 1
	at := func(i int, rest string) (string, string, bool) {
		if i < 0 || i > last {
			return "", "", false
		}
		return h.lines[i], rest, true
	}
	switch c := text[0]; {
	case c == '!':
		return at(last, text[1:])
	case c == '$' || c == '^' || c == '*' || c == ':':
		return at(last, text)
	case c == '-' || c >= '0' && c <= '9':
		n := 1
		for n < len(text) && text[n] >= '0' && text[n] <= '9' {
			n++
		}
		number, err := strconv.Atoi(text[:n])
		if err != nil {
			return "", "", false
		}
		if number < 0 {
			return at(len(h.lines)+number, text[n:])
		}
		return at(number-h.gone-1, text[n:])
	case c == '?':
		wanted, rest, _ := strings.Cut(text[1:], "?")
		return h.latest(rest, func(l string) bool { return strings.Contains(l, wanted) })
	}
	n := strings.IndexAny(text, " \t\n:^$*;&|<>()")
	if n < 0 {
		n = len(text)
	}
	return h.latest(text[n:], func(l string) bool { return strings.HasPrefix(l, text[:n]) })
}

func (h history) latest(rest string, fits func(string) bool) (string, string, bool) {
	for i := len(h.lines) - 1; i >= 0; i-- {
		if fits(h.lines[i]) {
			return h.lines[i], rest, true
		}
	}
	return "", "", false
}

// designated takes the words of an event that rest begins by asking for; all of it when it does not.
func designated(event, rest string) (text, after string, ok bool) {
	want, colon := strings.CutPrefix(rest, ":")
	if want == "" || !colon && strings.IndexByte("^$*", want[0]) < 0 || colon && strings.IndexByte("^$*-0123456789", want[0]) < 0 {
		return event, rest, true
	}
	words := strings.Fields(event)
	last := len(words) - 1
	number := func() int {
		n := 0
		for n < len(want) && want[n] >= '0' && want[n] <= '9' {
			n++
		}
		v, _ := strconv.Atoi(want[:n]) // digits are all that there is
		want = want[n:]
		return v
	}
	from, to := 0, 0
	switch c := want[0]; {
	case c == '^':
		from, to, want = 1, 1, want[1:]
	case c == '$':
		from, to, want = last, last, want[1:]
	case c == '*':
		from, to, want = 1, last, want[1:]
	default:
		if c != '-' {
			from = number()
		}
		to = from
		switch {
		case strings.HasPrefix(want, "*"):
			to, want = last, want[1:]
		case strings.HasPrefix(want, "-"):
			want = want[1:]
			switch {
			case strings.HasPrefix(want, "$"):
				to, want = last, want[1:]
			case want != "" && want[0] >= '0' && want[0] <= '9':
				to = number()
			default:
				to = last - 1
			}
		}
	}
	if from > last+1 || to > last {
		return "", "", false
	}
	return strings.Join(words[from:max(to+1, from)], " "), want, true
}

// builtinFc lists commands of the history, or runs them again: after replacing text (-s), or what an editor made of them.
func (sh *shell) builtinFc(args []string) int {
	args = args[1:]
	list, bare, reverse, again, editor := false, false, false, false, ""
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && !isDigits(args[0][1:]) {
		opt := args[0]
		args = args[1:]
		if opt == "--" {
			break
		}
	letters:
		for i := 1; i < len(opt); i++ {
			switch c := opt[i]; c {
			case 'l':
				list = true
			case 'n':
				bare = true
			case 'r':
				reverse = true
			case 's':
				again = true
			case 'e':
				if editor = opt[i+1:]; editor == "" {
					if len(args) == 0 {
						sh.warnf("fc: -e: option requires an argument")
						sh.usage("fc")
						return 2
					}
					editor, args = args[0], args[1:]
				}
				again = again || editor == "-"
				break letters
			default:
				return sh.badOption("fc", "-"+string(c))
			}
		}
	}
	sh.dropOwn()
	if again {
		return sh.fcAgain(args)
	}
	if len(sh.history.lines) == 0 {
		return 0
	}
	first, last, ok := sh.history.span(args, list)
	if !ok {
		sh.warnf("fc: history specification out of range")
		return 1
	}
	if first > last {
		first, last, reverse = last, first, !reverse
	}
	lines := sh.history.numbered(first, last)
	if reverse {
		slices.Reverse(lines)
	}
	if list {
		return sh.fcList(lines, bare)
	}
	return sh.fcEdit(lines, editor)
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

type numbered struct {
	n    int
	line string
}

func (h history) numbered(first, last int) []numbered {
	var out []numbered
	for i := first; i <= last; i++ {
		out = append(out, numbered{h.gone + i + 1, h.lines[i]})
	}
	return out
}

// span returns the lines that fc's operands mean: to be listed, the last 16 when there are none, else the last one.
func (h history) span(args []string, list bool) (first, last int, ok bool) {
	end := len(h.lines) - 1
	place := func(text string) (int, bool) {
		if n, err := strconv.Atoi(text); err == nil {
			switch {
			case n < 0:
				n += end + 1
			case n == 0:
				n = end
			default:
				n -= h.gone + 1
			}
			return min(max(n, 0), end), true
		}
		for i := end; i >= 0; i-- {
			if strings.HasPrefix(h.lines[i], text) {
				return i, true
			}
		}
		return 0, false
	}
	first, last = end, end
	if list {
		first = max(end-15, 0)
	}
	if len(args) > 0 {
		if first, ok = place(args[0]); !ok {
			return 0, 0, false
		}
		if last = first; list {
			last = end
		}
	}
	if len(args) > 1 {
		if last, ok = place(args[1]); !ok {
			return 0, 0, false
		}
	}
	return first, last, true
}

func (sh *shell) fcList(lines []numbered, bare bool) int {
	var b strings.Builder
	for _, l := range lines {
		if !bare {
			b.WriteString(strconv.Itoa(l.n))
		}
		b.WriteString("\t " + l.line + "\n")
	}
	return sh.print(b.String())
}

// fcAgain is fc -s: the last command that begins with a text, after the replacements.
func (sh *shell) fcAgain(args []string) int {
	var replace [][2]string
	for len(args) > 0 {
		old, with, ok := strings.Cut(args[0], "=")
		if !ok {
			break
		}
		replace, args = append(replace, [2]string{old, with}), args[1:]
	}
	want := ""
	if len(args) > 0 {
		want = args[0]
	}
	line, _, ok := sh.history.latest("", func(l string) bool { return strings.HasPrefix(l, want) })
	if n, err := strconv.Atoi(want); err == nil {
		line, _, ok = sh.history.event(strconv.Itoa(n))
	}
	if !ok {
		sh.warnf("fc: no command found")
		return 1
	}
	for _, r := range replace {
		line = strings.ReplaceAll(line, r[0], r[1])
	}
	return sh.runAgain(line)
}

// runAgain says what a command is, and runs it as a line of its own.
func (sh *shell) runAgain(line string) int {
	fmt.Fprintln(sh.stderr(), line)
	if n := len(sh.history.lines); n > 0 {
		h := sh.history
		h.lines = append(slices.Clone(h.lines[:n-1]), line)
		sh.history = h
	}
	return sh.builtinEval([]string{"eval", "--", line})
}

// fcEdit has an editor change commands, and runs what is left.
func (sh *shell) fcEdit(lines []numbered, editor string) int {
	if editor == "" {
		editor = sh.getOr("FCEDIT", sh.getOr("EDITOR", "vi"))
	}
	name := fmt.Sprintf("/tmp/bash-fc.%d", sh.proc.pid)
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.line + "\n")
	}
	if err := sh.fs().WriteFile(sh.ctx, name, []byte(b.String()), 0o600); err != nil {
		sh.warnf("fc: %s: cannot open temp file: %s", name, command.Reason(err))
		return 1
	}
	defer func() { _ = sh.fs().Remove(sh.ctx, name) }() // it is nobody's
	if status := sh.builtinEval([]string{"eval", "--", editor + " " + name}); status != 0 {
		return status
	}
	edited, err := sh.fs().ReadFile(sh.ctx, name, maxSourceSize)
	if err != nil {
		sh.warnf("fc: %s: %s", name, command.Reason(err))
		return 1
	}
	status := 0
	for line := range strings.SplitSeq(strings.TrimRight(string(edited), "\n"), "\n") {
		if line != "" {
			status = sh.runAgain(line)
		}
	}
	return status
}

// builtinBind has no line editor to set up. It says so, as bash does, and looks at its arguments.
func (sh *shell) builtinBind(args []string) int {
	sh.warnf("bind: warning: line editing not enabled")
	args = args[1:]
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		opt := args[0]
		args = args[1:]
		if opt == "--" {
			break
		}
		for i := 1; i < len(opt); i++ {
			c := opt[i]
			if strings.IndexByte("lpsvPSVX", c) >= 0 {
				continue
			}
			if strings.IndexByte("mfqurx", c) < 0 {
				return sh.badOption("bind", "-"+string(c))
			}
			value := opt[i+1:]
			if value == "" {
				if len(args) == 0 {
					sh.warnf("bind: -%c: option requires an argument", c)
					sh.usage("bind")
					return 2
				}
				value, args = args[0], args[1:]
			}
			switch {
			case c == 'q' || c == 'u':
				sh.warnf("bind: `%s': unknown function name", value)
				return 1
			case c == 'x' && !strings.HasPrefix(strings.TrimLeft(value, " \t"), `"`):
				sh.warnf("bind: %s: first non-whitespace character is not `\"'", value)
				return 1
			}
			break
		}
	}
	return 0
}
