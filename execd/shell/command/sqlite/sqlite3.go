package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// options are the command line: options may stand anywhere, the first operand is the database, the others are run.
type options struct {
	file     string
	named    bool
	version  bool
	init     string
	commands []string
	settings []setting // in their order, once the database is named
}

// setting is an option that takes effect in its turn.
type setting struct{ name, value string }

// sqlite is the command's body.
func sqlite(ctx context.Context, c *tool.Call) error {
	o := &options{file: ":memory:"}
	s := newSession(ctx, c)
	if err := s.parse(o); err != nil {
		return err
	}
	defer s.close()
	err := protect(func() error { return s.run(o) })
	if errors.Is(err, errMemory) {
		return s.Die(1, "Error: %v", err)
	}
	return err
}

// parse reads the command line. What only says how the database is opened takes effect here.
func (s *session) parse(o *options) error {
	args := s.Args[1:]
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			o.operand(arg)
			continue
		}
		name := "-" + strings.TrimLeft(arg, "-")
		st := setting{name: name}
		switch name {
		case "-separator", "-nullvalue", "-newline", "-cmd", "-init", "-vfs", "-mmap", "-maxsize", "-nonce":
			if len(args) == 0 {
				return s.Die(1, "Error: missing argument to %s", arg)
			}
			st.value, args = args[0], args[1:]
		case "-lookaside", "-pagecache":
			args = args[min(2, len(args)):]
		case "-help":
			_, err := s.Out.WriteString(usage)
			return errors.Join(err, tool.Exit(0))
		case "-version":
			o.version = true
		}
		if err := s.option(o, st, arg); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) operand(arg string) {
	if !o.named {
		o.file, o.named = arg, true
		return
	}
	o.commands = append(o.commands, arg)
}

func (s *session) option(o *options, st setting, arg string) error {
	switch st.name {
	case "-init":
		o.init = st.value
	case "-readonly":
		s.readOnly = true
	case "-bail":
		s.bail = true
	case "-separator", "-nullvalue", "-newline", "-cmd", "-header", "-noheader", "-echo", "-box", "-column", "-csv", "-html",
		"-json", "-line", "-list", "-markdown", "-quote", "-table", "-tabs", "-ascii":
		o.settings = append(o.settings, st)
	case "-batch", "-interactive", "-stats", "-memtrace", "-mmap", "-maxsize", "-lookaside", "-pagecache", "-nofollow", "-nonce",
		"-safe":
	case "-vfs", "-deserialize", "-append", "-zip", "-A":
		return s.Die(1, "Error: option not supported: %s", arg)
	default:
		s.Say("Error: unknown option: %s", arg)
		fmt.Fprintln(s.Stderr, "Use -help for a list of options.")
		return tool.Exit(1)
	}
	return nil
}

// run does what the command line says.
func (s *session) run(o *options) error {
	if o.version {
		s.file = ":memory:"
		return s.argument("SELECT sqlite_version() || ' ' || sqlite_source_id()")
	}
	s.file = o.file
	if o.init != "" {
		if _, err := s.readFile(o.init); err != nil && !errors.Is(err, errFailed) {
			return err
		}
	}
	for _, st := range o.settings {
		if err := s.apply(st); err != nil {
			return err
		}
	}
	for _, text := range o.commands {
		if err := s.argument(text); err != nil {
			return err
		}
	}
	if len(o.commands) > 0 {
		return nil
	}
	failed, err := s.input(s.Standard(s.ctx))
	if failed {
		s.Status = 1
	}
	return err
}

// apply sets what an option says. Those of separators mean what they mean after any mode.
func (s *session) apply(st setting) error {
	f := &s.format
	switch st.name {
	case "-cmd":
		return s.argument(st.value)
	case "-header":
		f.header, f.headerSet = true, true
	case "-noheader":
		f.header, f.headerSet = false, true
	case "-echo":
		s.echo = true
	case "-separator":
		f.column = unescape(st.value)
	case "-newline":
		f.row = unescape(st.value)
	case "-nullvalue":
		f.null = st.value
	case "-csv":
		f.mode, f.column, f.row = "csv", ",", "\n"
	case "-tabs":
		f.mode, f.column, f.row = "list", "\t", "\n"
	case "-ascii":
		f.mode, f.column, f.row = "ascii", "\x1f", "\x1e"
	case "-quote":
		f.mode, f.column, f.row = "quote", ",", "\n"
	default:
		f.mode = strings.TrimPrefix(st.name, "-")
	}
	return nil
}

// argument runs an operand or what -cmd says: SQL, or one dot command. Its failure is the end.
func (s *session) argument(text string) error {
	if strings.HasPrefix(text, ".") {
		switch err := s.dotCommand(text); {
		case errors.Is(err, errQuit):
			return tool.Exit(0)
		case errors.Is(err, errFailed):
			return tool.Exit(1)
		default:
			return err
		}
	}
	if s.echo {
		fmt.Fprintln(s.out, text)
	}
	if err := s.open(); err != nil {
		return err
	}
	err := s.execute(text)
	var wrong *sqlError
	if errors.As(err, &wrong) {
		fmt.Fprintf(s.Stderr, "Error: %s, %s\n", wrong.phase, wrong.text)
		return tool.Exit(wrong.code)
	}
	return err
}

// errQuit ends the input that it comes from.
var errQuit = errors.New("quit")

// errFailed is what a dot command returns that has said what is wrong.
var errFailed = errors.New("failed")

// wrong says what is wrong with a dot command.
func (s *session) wrong(format string, args ...any) error {
	fmt.Fprintf(s.Stderr, "Error: %s\n", fmt.Sprintf(format, args...))
	return errFailed
}

// input runs lines: dot commands, and statements that may go over several. It goes on after a failure, unless -bail is
// given, and says whether there was one.
func (s *session) input(in io.Reader) (failed bool, err error) {
	outer := s.line
	defer func() { s.line = outer }()
	s.line = 0
	lines := s.Lines(in)
	p := &pending{}
	for !failed || !s.bail {
		raw, ok := lines.Next()
		if !ok {
			break
		}
		s.line++
		switch err := s.inputLine(p, strings.TrimSuffix(string(raw), "\r")); {
		case errors.Is(err, errQuit):
			return failed, nil
		case errors.Is(err, errFailed):
			failed = true
		case err != nil:
			return failed, err
		}
	}
	if err := lines.Err(); err != nil {
		return failed, err
	}
	if failed && s.bail || blank(p.sql) {
		return failed, nil
	}
	err = s.runLines(p.sql, p.line)
	if errors.Is(err, errFailed) {
		return true, nil
	}
	return failed, err
}

// pending is a statement that has begun.
type pending struct {
	sql  string
	line int // that it began on
}

func (s *session) inputLine(p *pending, line string) error {
	if p.sql == "" {
		switch {
		case strings.TrimSpace(line) == "" || line[0] == '#':
			return nil
		case line[0] == '.':
			return s.inputCommand(line)
		}
		p.line = s.line
	} else {
		if t := strings.TrimSpace(line); t == "/" || strings.EqualFold(t, "go") {
			line = ";"
		}
		line = "\n" + line
	}
	if len(p.sql)+len(line) > maxSQL {
		return s.wrong("statement too long near line %d", p.line)
	}
	p.sql += line
	if !strings.Contains(line, ";") || !complete(p.sql) {
		return nil
	}
	sql := p.sql
	p.sql = ""
	err := s.runLines(sql, p.line)
	return errors.Join(err, s.onceIsOver())
}

func (s *session) inputCommand(line string) error {
	if s.echo {
		fmt.Fprintln(s.out, line)
	}
	return s.dotCommand(line)
}

// runLines runs complete statements that began at a line.
func (s *session) runLines(sql string, started int) error {
	if s.echo {
		fmt.Fprintln(s.out, sql)
	}
	if err := s.open(); err != nil {
		return err
	}
	err := s.execute(sql)
	var wrong *sqlError
	if !errors.As(err, &wrong) {
		return err
	}
	kind := map[string]string{inPrepare: "Parse error", stepping: "Runtime error"}[wrong.phase]
	fmt.Fprintf(s.Stderr, "%s near line %d: %s\n", kind, started, wrong.text)
	return errFailed
}

// readFile runs a file as input.
func (s *session) readFile(name string) (failed bool, err error) {
	if s.depth++; s.depth > maxDepth {
		return true, s.wrong("Input nesting limit (%d) reached at line %d.", maxDepth, s.line)
	}
	defer func() { s.depth-- }()
	in, err := s.Open(s.ctx, name)
	if err != nil {
		return true, s.wrong("cannot open \"%s\"", name)
	}
	defer in.Close()
	return s.input(in)
}
