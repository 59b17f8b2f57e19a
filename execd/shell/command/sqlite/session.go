package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/ext/fts5"
	"github.com/ncruces/go-sqlite3/ext/regexp"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// session is one run of sqlite3: a connection, where its output goes, and how that looks.
type session struct {
	*tool.Call
	ctx   context.Context
	pulse *pulse
	files *files
	conn  *sqlite3.Conn // nil until it is needed

	file     string // the database, as it was named
	readOnly bool

	format         format
	echo, bail     bool
	changes, plans bool // .changes, .eqp
	timer          bool
	parameters     map[string]parameter
	out            *bufio.Writer
	target         *treepath.File // that out writes to, nil for standard output
	once           bool           // out is so for one statement
	line, depth    int            // of the input
	vacuums        bool           // the statement that runs is VACUUM, see authorize
}

func newSession(ctx context.Context, c *tool.Call) *session {
	return &session{
		Call: c, ctx: ctx, out: c.Out, pulse: &pulse{Context: ctx, call: c}, parameters: map[string]parameter{},
		format: format{mode: "list", column: "|", row: "\n"},
	}
}

// pulse is the context that SQLite asks whether to go on: every thousand steps of its machine, and for every row. It counts
// both.
type pulse struct {
	context.Context
	call *tool.Call
	err  error
}

// Err implements context.Context. Once it has given an error it gives that.
func (p *pulse) Err() error {
	if p.err == nil {
		p.err = p.call.Step(p.Context, pulseSteps)
	}
	return p.err
}

// errMemory is that SQLite has used up what it may.
var errMemory = errors.New("out of memory")

// protect makes an error of what the library panics with when SQLite has no more memory.
func protect(f func() error) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case runtime.Error:
			panic(r)
		case error:
			err = errMemory
		default:
			panic(r)
		}
	}()
	return f()
}

// open makes the connection if there is none.
func (s *session) open() error {
	if s.conn != nil {
		return nil
	}
	conn, err := s.connect()
	if err != nil {
		if end := s.ended(); end != nil {
			return end
		}
		if errors.Is(err, sqlite3.NOTADB) {
			fmt.Fprintf(s.Stderr, "Error: %s\n", errorText(err))
			return tool.Exit(1)
		}
		fmt.Fprintf(s.Stderr, "Error: unable to open database \"%s\": %s\n", s.file, errorText(err))
		return tool.Exit(1)
	}
	s.conn = conn
	return nil
}

func (s *session) connect() (*sqlite3.Conn, error) {
	if s.files == nil {
		if err := s.Take(maxHeap); err != nil {
			s.pulse.err = err
			return nil, err
		}
		s.files = newFiles(s.ctx, s.Call)
	}
	ctx := sqlite3.WithMaxMemory(s.pulse, maxHeap)
	uri, wal, err := s.uri(s.file)
	if err != nil {
		return nil, err
	}
	conn, err := sqlite3.OpenContext(ctx, uri)
	if err != nil {
		return nil, err
	}
	if err := s.configure(conn, wal); err != nil {
		_ = conn.Close() // it has not been used
		return nil, err
	}
	return conn, nil
}

// configure makes a connection what that of the real shell is, and bounds it.
func (s *session) configure(conn *sqlite3.Conn, wal bool) error {
	conn.SetInterrupt(s.pulse)
	conn.Limit(sqlite3.LIMIT_LENGTH, maxValue)
	conn.Limit(sqlite3.LIMIT_SQL_LENGTH, maxSQL)
	conn.Limit(sqlite3.LIMIT_FUNCTION_ARG, maxArguments)
	for option, on := range map[sqlite3.DBConfig]bool{
		sqlite3.DBCONFIG_DQS_DML: true, sqlite3.DBCONFIG_DQS_DDL: true, sqlite3.DBCONFIG_ENABLE_FKEY: false,
		sqlite3.DBCONFIG_TRUSTED_SCHEMA: true,
	} {
		if _, err := conn.Config(option, on); err != nil {
			return err
		}
	}
	if wal {
		if err := conn.Exec("PRAGMA locking_mode=EXCLUSIVE"); err != nil {
			return err
		}
	}
	return errors.Join(conn.SetAuthorizer(s.authorize), regexp.Register(conn), fts5.Register(conn), registerSeries(conn),
		s.addFunctions(conn))
}

// uri returns a name of a database as SQLite opens it, in our VFS, and whether it is one in WAL mode.
func (s *session) uri(name string) (uri string, wal bool, err error) {
	query := "?vfs=" + s.files.name
	switch {
	case name == ":memory:" || name == "":
		// A temporary database, which is in memory too, but in that of files, which may be more.
		return "file:" + query, false, nil
	case strings.HasPrefix(name, "file:"):
		if !plainURI.MatchString(name) {
			return "", false, sqlite3.CANTOPEN
		}
		if strings.Contains(name, "?") {
			query = "&" + query[1:]
		}
		return name + query, false, nil
	}
	if s.readOnly {
		query += "&mode=ro"
	}
	path := s.FS.Abs(name)
	wal = s.files.isWAL(path)
	if wal && s.readOnly && !s.files.exists(path+"-wal") {
		query += "&immutable=1" // there is nothing to read but the file, and no index can be made
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + query, wal, nil
}

// reopen takes another database.
func (s *session) reopen(name string) error {
	s.disconnect()
	s.file = name
	return s.open()
}

// disconnect closes the connection. After a panic of the library's there may be no way to do that.
func (s *session) disconnect() {
	conn := s.conn
	if conn == nil {
		return
	}
	s.conn = nil
	_ = protect(func() error {
		for _, stmt := range slices.Collect(conn.Stmts()) {
			_ = stmt.Close()
		}
		return nil
	})
	_ = protect(conn.Close)
}

func (s *session) close() {
	s.disconnect()
	if s.files != nil {
		s.files.close()
	}
	_ = s.redirect(nil) // what was written was flushed by each statement
}

// redirect makes f, or standard output for nil, the place where results go.
func (s *session) redirect(f *treepath.File) error {
	err := s.out.Flush()
	if s.target != nil {
		err = errors.Join(err, s.target.Close())
	}
	s.target, s.once, s.out = f, false, s.Out
	if f != nil {
		s.out = bufio.NewWriterSize(f, 64<<10)
	}
	return err
}

// onceIsOver ends .once after a statement.
func (s *session) onceIsOver() error {
	if !s.once {
		return nil
	}
	return s.redirect(nil)
}

// elapsed prints how long a statement took.
func (s *session) elapsed(since time.Time) {
	if s.timer {
		fmt.Fprintf(s.out, "Run Time: real %.3f user 0.000000 sys 0.000000\n", s.Now().Sub(since).Seconds())
	}
}
