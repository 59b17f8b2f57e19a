package sqlite

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// dot is a command of the shell's: args[0] is its name without the dot.
type dot struct {
	name string
	help string // its line in .help: arguments, then what it does
	open bool   // whether it needs the database
	run  func(s *session, args []string) error
}

// dots are found by any beginning of their names, the first one that fits. They are set by init, since .help prints them.
var dots []dot

func init() {
	dots = []dot{
		{"backup", "?DB? FILE|Backup DB (default \"main\") to FILE", true, (*session).backupCommand},
		{"bail", "on|off|Stop after hitting an error.  Default OFF", false, toggle(func(s *session) *bool { return &s.bail })},
		{"binary", "on|off|Turn binary output on or off.  Default OFF", false, ignored},
		{"cd", "DIRECTORY|Change the working directory to DIRECTORY", false, (*session).cdCommand},
		{"changes", "on|off|Show number of rows changed by SQL", false, toggle(func(s *session) *bool { return &s.changes })},
		{"databases", "|List names and files of attached databases", true, (*session).databasesCommand},
		{"dump", "?OBJECTS?|Render database content as SQL", true, (*session).dumpCommand},
		{"echo", "on|off|Turn command echo on or off", false, toggle(func(s *session) *bool { return &s.echo })},
		{"eqp", "on|off|full|...|Enable or disable automatic EXPLAIN QUERY PLAN", false, toggle(func(s *session) *bool { return &s.plans })},
		{"exit", "?CODE?|Exit this program with return-code CODE", false, (*session).exitCommand},
		{"explain", "?on|off|auto?|Change the EXPLAIN formatting mode.  Default: auto", false, ignored},
		{"fullschema", "?--indent?|Show schema and the content of sqlite_stat tables", true, (*session).fullSchemaCommand},
		{"headers", "on|off|Turn display of headers on or off", false, (*session).headersCommand},
		{"help", "?-all? ?PATTERN?|Show help text for PATTERN", false, (*session).helpCommand},
		{"import", "FILE TABLE|Import data from FILE into TABLE", true, (*session).importCommand},
		{"indexes", "?TABLE?|Show names of indexes", true, (*session).indexesCommand},
		{"indices", "", true, (*session).indexesCommand},
		{"log", "FILE|on|off|Turn logging on or off.  FILE can be stderr/stdout", false, ignored},
		{"mode", "MODE ?OPTIONS?|Set output mode", false, (*session).modeCommand},
		{"nullvalue", "STRING|Use STRING in place of NULL values", false, (*session).nullCommand},
		{"once", "?OPTIONS? ?FILE?|Output for the next SQL command only to FILE", false, (*session).outputCommand},
		{"open", "?OPTIONS? ?FILE?|Close existing database and reopen FILE", false, (*session).openCommand},
		{"output", "?FILE?|Send output to FILE or stdout if FILE is omitted", false, (*session).outputCommand},
		{"parameter", "CMD ...|Manage SQL parameter bindings", true, (*session).parameterCommand},
		{"print", "STRING...|Print literal STRING", false, (*session).printCommand},
		{"prompt", "MAIN CONTINUE|Replace the standard prompts", false, ignored},
		{"quit", "|Stop interpreting input stream, exit if primary.", false, func(*session, []string) error { return errQuit }},
		{"read", "FILE|Read input from FILE", false, (*session).readCommand},
		{"restore", "?DB? FILE|Restore content of DB (default \"main\") from FILE", true, (*session).restoreCommand},
		{"save", "?OPTIONS? FILE|Write database to FILE (an alias for .backup ...)", true, (*session).backupCommand},
		{"schema", "?PATTERN?|Show the CREATE statements matching PATTERN", true, (*session).schemaCommand},
		{"separator", "COL ?ROW?|Change the column and row separators", false, (*session).separatorCommand},
		{"show", "|Show the current values for various settings", false, (*session).showCommand},
		{"stats", "?ARG?|Show stats or turn stats on or off", false, ignored},
		{"tables", "?TABLE?|List names of tables matching LIKE pattern TABLE", true, (*session).tablesCommand},
		{"timeout", "MS|Try opening locked tables for MS milliseconds", true, (*session).timeoutCommand},
		{"timer", "on|off|Turn SQL timer on or off", false, toggle(func(s *session) *bool { return &s.timer })},
		{"version", "|Show source, library and compiler versions", true, (*session).versionCommand},
		{"width", "NUM1 NUM2 ...|Set minimum column widths for columnar output", false, (*session).widthCommand},
	}
}

// dotCommand runs a line that begins with a dot. What is wrong is said, and gives errFailed; errQuit ends the input.
func (s *session) dotCommand(line string) error {
	args := dotWords(line[1:])
	if len(args) == 0 {
		return nil
	}
	i := slices.IndexFunc(dots, func(d dot) bool { return strings.HasPrefix(d.name, args[0]) })
	if i < 0 {
		return s.wrong("unknown command or invalid arguments:  \"%s\". Enter \".help\" for help", args[0])
	}
	if dots[i].open {
		if err := s.open(); err != nil {
			return err
		}
	}
	args[0] = dots[i].name
	return dots[i].run(s, args)
}

// dotWords splits a line into words; quotes keep them together, and in double ones a backslash is as in C.
func dotWords(line string) []string {
	var found []string
	for {
		line = strings.TrimLeft(line, " \t\r\n")
		if line == "" {
			return found
		}
		quote := line[0]
		if quote != '\'' && quote != '"' {
			n := strings.IndexAny(line, " \t\r\n")
			if n < 0 {
				n = len(line)
			}
			found, line = append(found, line[:n]), line[n:]
			continue
		}
		n := 1
		for n < len(line) && line[n] != quote {
			if line[n] == '\\' && quote == '"' && n+1 < len(line) {
				n++
			}
			n++
		}
		word := line[1:min(n, len(line))]
		if quote == '"' {
			word = unescape(word)
		}
		found, line = append(found, word), line[min(n+1, len(line)):]
	}
}

// unescape resolves backslashes as in C.
func unescape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		if at := strings.IndexByte("abtnvfr", text[i]); at >= 0 {
			b.WriteByte("\a\b\t\n\v\f\r"[at])
			continue
		}
		n := i
		for n < len(text) && n < i+3 && text[n] >= '0' && text[n] <= '7' {
			n++
		}
		if n == i {
			b.WriteByte(text[i])
			continue
		}
		code, _ := strconv.ParseUint(text[i:n], 8, 16) // digits are all that there is
		b.WriteByte(byte(code))
		i = n - 1
	}
	return b.String()
}

func ignored(*session, []string) error { return nil }

// usage says how a command is used, on standard error as the real one does.
func (s *session) usage(text string) error {
	fmt.Fprintf(s.Stderr, "Usage: %s\n", text)
	return errFailed
}

// toggle makes a command that sets a switch.
func toggle(of func(*session) *bool) func(*session, []string) error {
	return func(s *session, args []string) error {
		if len(args) != 2 {
			return s.usage("." + args[0] + " on|off")
		}
		*of(s) = isOn(args[1])
		return nil
	}
}

func isOn(text string) bool {
	n, err := strconv.ParseInt(text, 0, 64)
	return err == nil && n != 0 || strings.EqualFold(text, "on") || strings.EqualFold(text, "yes") || text == "full" || text == "trigger"
}

func (s *session) cdCommand(args []string) error {
	if len(args) != 2 {
		return s.usage(".cd DIRECTORY")
	}
	if _, err := s.FS.ReadDir(s.ctx, args[1]); err != nil {
		if tool.Ends(s.ctx, err) {
			return err
		}
		fmt.Fprintf(s.Stderr, "Cannot change to directory \"%s\"\n", args[1])
		return errFailed
	}
	s.FS = s.FS.At(args[1])
	return nil
}

func (s *session) exitCommand(args []string) error {
	if len(args) < 2 {
		return errQuit
	}
	n, _ := strconv.Atoi(args[1]) // anything else is 0
	if n == 0 {
		return errQuit
	}
	return tool.Exit(n & 0xff)
}

func (s *session) headersCommand(args []string) error {
	if len(args) != 2 {
		return s.usage(".headers on|off")
	}
	s.format.header, s.format.headerSet = isOn(args[1]), true
	return nil
}

func (s *session) helpCommand(args []string) error {
	for _, d := range dots {
		i := strings.LastIndexByte(d.help, '|')
		if i < 0 || len(args) > 1 && !strings.HasPrefix(d.name, strings.TrimPrefix(args[1], ".")) {
			continue
		}
		fmt.Fprintf(s.out, "%-24s %s\n", strings.TrimSpace("."+d.name+" "+d.help[:i]), d.help[i+1:])
	}
	return nil
}

func (s *session) nullCommand(args []string) error {
	if len(args) != 2 {
		return s.usage(".nullvalue STRING")
	}
	s.format.null = args[1]
	return nil
}

func (s *session) separatorCommand(args []string) error {
	if len(args) < 2 || len(args) > 3 {
		return s.usage(".separator COL ?ROW?")
	}
	s.format.column = args[1]
	if len(args) == 3 {
		s.format.row = args[2]
	}
	return nil
}

func (s *session) widthCommand(args []string) error {
	s.format.widths = nil
	for _, a := range args[1:] {
		n, _ := strconv.Atoi(a) // anything else is 0
		s.format.widths = append(s.format.widths, max(min(n, 1000), -1000))
	}
	return nil
}

func (s *session) timeoutCommand(args []string) error {
	ms := 0
	if len(args) > 1 {
		ms, _ = strconv.Atoi(args[1]) // anything else is 0
	}
	return s.conn.BusyTimeout(time.Duration(max(ms, 0)) * time.Millisecond)
}

func (s *session) versionCommand([]string) error {
	return s.execute("SELECT 'SQLite ' || sqlite_version() || ' ' || sqlite_source_id()")
}

func (s *session) printCommand(args []string) error {
	_, err := s.out.WriteString(strings.Join(args[1:], " ") + "\n")
	return err
}

func (s *session) showCommand([]string) error {
	word := map[bool]string{true: "on", false: "off"}
	output := "stdout"
	if s.target != nil {
		output = s.target.Name()
	}
	widths := ""
	for _, w := range s.format.widths {
		widths += strconv.Itoa(w) + " "
	}
	for _, line := range [][2]string{
		{"echo", word[s.echo]}, {"eqp", word[s.plans]}, {"explain", "auto"}, {"headers", word[s.format.header]},
		{"mode", s.modeText()}, {"nullvalue", cString(s.format.null)}, {"output", output},
		{"colseparator", cString(s.format.column)}, {"rowseparator", cString(s.format.row)}, {"stats", "off"},
		{"width", widths}, {"filename", s.file},
	} {
		fmt.Fprintf(s.out, "%12.12s: %s\n", line[0], line[1])
	}
	return nil
}

// outputCommand is .output and .once.
func (s *session) outputCommand(args []string) error {
	once := args[0] == "once"
	name := ""
	for _, a := range args[1:] {
		switch {
		case a == "--bom" || a == "-bom":
		case strings.HasPrefix(a, "|") || strings.HasPrefix(a, "-") && a != "-" || name != "":
			return s.wrong("unknown option: \"%s\"", a)
		default:
			name = a
		}
	}
	if name == "" || name == "stdout" || name == "off" {
		return s.redirect(nil)
	}
	f, err := s.FS.OpenFile(s.ctx, name, treepath.Write|treepath.Create|treepath.Truncate, 0o666)
	if err != nil {
		if tool.Ends(s.ctx, err) {
			return err
		}
		return s.wrong("cannot write to \"%s\"", name)
	}
	err = s.redirect(f)
	s.once = once
	return err
}

func (s *session) readCommand(args []string) error {
	if len(args) != 2 {
		return s.usage(".read FILE")
	}
	failed, err := s.readFile(args[1])
	if err == nil && failed {
		return errFailed
	}
	return err
}

func (s *session) openCommand(args []string) error {
	name, fresh := ":memory:", false
	s.readOnly = false
	for _, a := range args[1:] {
		switch strings.TrimLeft(a, "-") {
		case "new":
			fresh = true
		case "readonly":
			s.readOnly = true
		case "nofollow":
		default:
			if strings.HasPrefix(a, "-") {
				return s.wrong("unknown option: %s", a)
			}
			name = a
		}
	}
	s.disconnect()
	if fresh && name != ":memory:" {
		if err := s.FS.Remove(s.ctx, name); err != nil && tool.Ends(s.ctx, err) {
			return err
		}
	}
	return s.reopen(name)
}

// backupCommand is .backup and .save.
func (s *session) backupCommand(args []string) error {
	return s.copyDatabase(args, ".backup ?DB? ?OPTIONS? FILENAME", func(db, uri string) error {
		return s.conn.Backup(db, uri)
	})
}

func (s *session) restoreCommand(args []string) error {
	return s.copyDatabase(args, ".restore ?DB? FILE", func(db, uri string) error { return s.conn.Restore(db, uri) })
}

func (s *session) copyDatabase(args []string, usage string, do func(db, uri string) error) error {
	args = slices.DeleteFunc(args[1:], func(a string) bool { return strings.HasPrefix(a, "-") })
	db := "main"
	if len(args) == 2 {
		db, args = args[0], args[1:]
	}
	if len(args) != 1 {
		return s.usage(usage)
	}
	uri, _, err := s.uri(args[0])
	if err == nil {
		err = do(db, uri)
	}
	switch {
	case err == nil:
		return nil
	case s.ended() != nil:
		return s.ended()
	}
	return s.wrong("%s", errorText(err))
}

// query runs a query and calls row for each of its rows; what fails is said.
func (s *session) query(sql string, bind []value, row func(get func(int) value)) error {
	stmt, _, err := s.conn.Prepare(sql)
	if err == nil && stmt != nil {
		defer stmt.Close()
		for i, v := range bind {
			if err = v.bind(stmt, i+1); err != nil {
				break
			}
		}
		for err == nil && stmt.Step() {
			row(func(i int) value { return valueOf(stmt, i) })
			err = s.Step(s.ctx, 1)
		}
		if err == nil {
			err = stmt.Err()
		}
	}
	switch {
	case err == nil:
		return nil
	case s.ended() != nil:
		return s.ended()
	case tool.Ends(s.ctx, err):
		return err
	}
	return s.wrong("%s", errorText(err))
}
