package sqlite

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// modes are the output modes, in the order in which they are listed.
var modes = strings.Fields("ascii box column csv html insert json line list markdown qbox quote table tabs tcl")

// wrapAt is where the modes that draw tables wrap, unless told otherwise.
const wrapAt = 60

// modeCommand is .mode.
func (s *session) modeCommand(args []string) error {
	mode, table := "", ""
	f := s.format
	f.wrap, f.byWord, f.quoted = wrapAt, false, false
	for i := 1; i < len(args); i++ {
		a := args[i]
		switch option := strings.TrimLeft(a, "-"); {
		case !strings.HasPrefix(a, "-") && mode == "":
			mode = a
		case !strings.HasPrefix(a, "-") && table == "":
			table = a
		case (option == "wrap" || option == "wordwrap") && i+1 < len(args):
			i++
			if option == "wordwrap" {
				f.byWord = isOn(args[i])
			} else {
				f.wrap, _ = strconv.Atoi(args[i]) // anything else is 0
			}
		case option == "ww":
			f.byWord = true
		case option == "quote" || option == "noquote":
			f.quoted = option == "quote"
		default:
			return s.wrong("extra argument: \"%s\"", a)
		}
	}
	if mode == "" {
		if len(args) == 1 {
			fmt.Fprintf(s.out, "current output mode: %s\n", s.modeText())
			return nil
		}
		mode = s.format.mode
	}
	i := slices.Index(modes, mode)
	if i < 0 {
		i = slices.IndexFunc(modes, func(m string) bool { return strings.HasPrefix(m, strings.TrimSuffix(mode, "s")) })
	}
	if i < 0 {
		return s.wrong("mode should be one of: %s", strings.Join(modes, " "))
	}
	s.setMode(&f, modes[i], table)
	s.format = f
	return nil
}

// setMode makes f a mode with the separators that go with it.
func (s *session) setMode(f *format, mode, table string) {
	f.mode = mode
	switch mode {
	case "box", "table", "markdown", "column":
		if !f.headerSet {
			f.header = true
		}
	case "qbox":
		f.mode, f.quoted = "box", true
	case "list":
		f.column, f.row = "|", "\n"
	case "line":
		f.row = "\n"
	case "csv":
		f.column, f.row = ",", "\r\n"
	case "tabs":
		f.mode, f.column, f.row = "list", "\t", "\n"
	case "ascii":
		f.column, f.row = "\x1f", "\x1e"
	case "quote":
		f.column, f.row = ",", "\n"
	case "tcl":
		f.column, f.row = " ", "\n"
	case "insert":
		if f.table = table; table == "" {
			f.table = "table"
		}
	}
}

// modeText describes the mode, as .mode alone prints it.
func (s *session) modeText() string {
	f := s.format
	if f.mode != "column" && f.mode != "box" && f.mode != "table" && f.mode != "markdown" {
		return f.mode
	}
	on := map[bool]string{true: "on", false: "off"}
	no := map[bool]string{true: "", false: "no"}
	return fmt.Sprintf("%s --wrap %d --wordwrap %s --%squote", f.mode, f.wrap, on[f.byWord], no[f.quoted])
}
