package sqlite

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync/atomic"

	"github.com/ncruces/go-sqlite3"
	sqlitevfs "github.com/ncruces/go-sqlite3/vfs"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// files is what SQLite opens files in: the tree of one process, as a VFS of SQLite's.
//
// SQLite finds a VFS by its name, and a name of a database may be a URI that says another one, among them that of the
// host's files. So every name that a script can say is looked at: by session.uri where it is the command's, by authorize
// where it is in a statement.
type files struct {
	ctx   context.Context
	call  *tool.Call
	name  string
	ended error // what ended the command while SQLite read or wrote, which it knows as an I/O error
}

// lastFiles numbers the VFSs of this process of the daemon's, whose names are of one table.
var lastFiles atomic.Int64

func newFiles(ctx context.Context, call *tool.Call) *files {
	f := &files{ctx: ctx, call: call, name: fmt.Sprintf("tree-%d", lastFiles.Add(1))}
	sqlitevfs.Register(f.name, f)
	return f
}

func (f *files) close() { sqlitevfs.Unregister(f.name) }

// plainURI is a URI that only says how to open a file.
var plainURI = regexp.MustCompile(`^file:[^?#%]*(\?` + plainParameter + `(&` + plainParameter + `)*)?$`)

const plainParameter = `(mode=(ro|rw|rwc|memory)|immutable=[01]|nolock=[01]|cache=(shared|private))`

// authorize decides what a statement may do: all but to attach a database by a URI that may lead elsewhere, or by an
// expression, whose value is not known yet.
func (s *session) authorize(action sqlite3.AuthorizerActionCode, name, _, _, _ string) sqlite3.AuthorizerReturnCode {
	const uri = "file:"
	switch {
	case action != sqlite3.AUTH_ATTACH:
	case name == "" && !s.vacuums: // VACUUM attaches a temporary one
		return sqlite3.AUTH_DENY
	case len(name) >= len(uri) && name[:len(uri)] == uri && !plainURI.MatchString(name):
		return sqlite3.AUTH_DENY
	}
	return sqlite3.AUTH_OK
}

// step counts work and says whether to go on.
func (f *files) step(bytes int) error {
	if f.ended == nil {
		f.ended = f.call.Step(f.ctx, 1+bytes>>10)
	}
	return f.ended
}

// Open implements vfs.VFS.
func (f *files) Open(name string, flags sqlitevfs.OpenFlag) (sqlitevfs.File, sqlitevfs.OpenFlag, error) {
	if err := f.step(0); err != nil {
		return nil, flags, err
	}
	if name == "" {
		return &temporary{files: f}, flags, nil
	}
	how := treepath.Read
	if flags&sqlitevfs.OPEN_READWRITE != 0 {
		how |= treepath.Write
	}
	if flags&sqlitevfs.OPEN_CREATE != 0 {
		how |= treepath.Create
	}
	if flags&sqlitevfs.OPEN_EXCLUSIVE != 0 {
		how |= treepath.Exclusive
	}
	opened, err := f.call.FS.OpenFile(f.ctx, name, how, 0o644)
	if how&treepath.Write != 0 && (errors.Is(err, treepath.ErrAccess) || errors.Is(err, vfs.ErrReadOnly)) {
		opened, err = f.call.FS.OpenFile(f.ctx, name, treepath.Read, 0)
		flags = flags&^(sqlitevfs.OPEN_READWRITE|sqlitevfs.OPEN_CREATE) | sqlitevfs.OPEN_READONLY
	}
	if err != nil {
		return nil, flags, sqlite3.CANTOPEN
	}
	a, err := opened.Stat()
	if err != nil || a.Type != vfs.TypeRegular {
		return nil, flags, errors.Join(sqlite3.CANTOPEN, opened.Close())
	}
	if flags&sqlitevfs.OPEN_MAIN_DB == 0 {
		return &file{File: opened, files: f}, flags, nil
	}
	return &file{File: opened, files: f, locks: lockOf(f.call.FS.Tree, a.Ino)}, flags, nil
}

// Delete implements vfs.VFS.
func (f *files) Delete(name string, _ bool) error {
	if err := f.step(0); err != nil {
		return err
	}
	err := f.call.FS.Remove(f.ctx, name)
	if errors.Is(err, vfs.ErrNotExist) {
		return sqlite3.IOERR_DELETE_NOENT
	}
	return err
}

// Access implements vfs.VFS. An empty file is none, as it is for SQLite's own.
func (f *files) Access(name string, flags sqlitevfs.AccessFlag) (bool, error) {
	if flags != sqlitevfs.ACCESS_EXISTS {
		return f.call.FS.Access(f.ctx, name, treepath.AccessRead|treepath.AccessWrite) == nil, nil
	}
	return f.exists(name), nil
}

func (f *files) exists(name string) bool {
	a, err := f.call.FS.Stat(f.ctx, name)
	return err == nil && (a.Type != vfs.TypeRegular || a.Size > 0)
}

// FullPathname implements vfs.VFS.
func (f *files) FullPathname(name string) (string, error) { return f.call.FS.Abs(name), nil }

// isWAL says whether a database is in WAL mode: bytes 18 and 19 of its header, by section 1.3 of SQLite's file format.
func (f *files) isWAL(name string) bool {
	opened, err := f.call.FS.Open(f.ctx, name)
	if err != nil || opened.Device() != nil {
		return false
	}
	defer opened.Close()
	var head [20]byte
	n, _ := opened.ReadAt(head[:], 0) // less is no database
	return n == len(head) && head[18] == 2 && head[19] == 2
}
