package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"path"
	"strconv"
	"strings"

	"connectrpc.com/connect"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd"
	carrelv1 "github.com/carrelfs/carrel/execd/api/carrel/v1"
	"github.com/carrelfs/carrel/execd/api/carrel/v1/carrelv1connect"
	"github.com/carrelfs/carrel/execd/tools"
)

// filesService is the FilesService. What it finds and searches, it does with the tools of agents.
type filesService struct{ Config }

var _ carrelv1connect.FilesServiceHandler = filesService{}

// located is a request for something at a path of a workspace.
type located interface {
	GetWorkspace() string
	GetPath() string
	GetRawPath() []byte
}

// pathOf is the path of a request, from the root.
func pathOf(m located) string { return "/" + strings.TrimLeft(rawOr(m.GetPath(), m.GetRawPath()), "/") }

func rawOr(text string, raw []byte) string {
	if len(raw) > 0 {
		return string(raw)
	}
	return text
}

// onWorkspace calls f with the files of a workspace on which a request has a right. What f changes, every mount shows when it returns.
func (c Config) onWorkspace(
	ctx context.Context, h http.Header, workspace string, right Right, f func(fs treepath.FS) error,
) error {
	if err := c.Access.check(h, workspace, right); err != nil {
		return err
	}
	ws, err := c.Open(ctx, workspace)
	if err != nil {
		return err
	}
	err = f(treepath.FS{Tree: ws.Tree()})
	if right == Write {
		ws.Settle(ctx)
	}
	return errors.Join(err, ws.Close())
}

// answerTo makes what f returns the answer to a call.
func answerTo[M any](m *M, err error) (*connect.Response[M], error) {
	if err != nil {
		return nil, wireError(err)
	}
	return connect.NewResponse(m), nil
}

// Stat implements carrelv1connect.FilesServiceHandler.
func (s filesService) Stat(ctx context.Context, r *connect.Request[carrelv1.StatRequest]) (*connect.Response[carrelv1.Node], error) {
	var n *carrelv1.Node
	err := s.onWorkspace(ctx, r.Header(), r.Msg.GetWorkspace(), Read, func(fs treepath.FS) error {
		stat := fs.Stat
		if r.Msg.GetNofollow() {
			stat = fs.Lstat
		}
		p := pathOf(r.Msg)
		a, err := stat(ctx, p)
		if err == nil {
			n, err = nodeMessage(ctx, fs, p, a)
		}
		return err
	})
	return answerTo(n, err)
}

// ListDir implements carrelv1connect.FilesServiceHandler.
func (s filesService) ListDir(
	ctx context.Context, r *connect.Request[carrelv1.ListDirRequest],
) (*connect.Response[carrelv1.ListDirResponse], error) {
	m := &carrelv1.ListDirResponse{}
	err := s.onWorkspace(ctx, r.Header(), r.Msg.GetWorkspace(), Read, func(fs treepath.FS) error {
		entries, next, err := reader(fs).Dirents(ctx, tools.ListArgs{
			Path: pathOf(r.Msg), After: r.Msg.GetAfter(), Limit: count(r.Msg.GetLimit()),
		})
		m.NextAfter = next
		for _, d := range entries {
			var n *carrelv1.Node
			if err == nil {
				n, err = entryMessage(ctx, fs, d)
			}
			if n != nil {
				m.Entries = append(m.Entries, n)
			}
		}
		return err
	})
	return answerTo(m, err)
}

// entryMessage is an entry of a directory, or nil when it has gone meanwhile.
func entryMessage(ctx context.Context, fs treepath.FS, d vfs.Dirent) (*carrelv1.Node, error) {
	a, err := fs.Tree.Stat(ctx, d.Ino)
	if err == nil {
		var n *carrelv1.Node
		if n, err = nodeMessage(ctx, fs, d.Name, a); err == nil {
			return n, nil
		}
	}
	if errors.Is(err, vfs.ErrStale) || errors.Is(err, vfs.ErrNotExist) {
		err = nil
	}
	return nil, err
}

// ReadFile implements carrelv1connect.FilesServiceHandler.
func (s filesService) ReadFile(
	ctx context.Context, r *connect.Request[carrelv1.ReadFileRequest],
) (*connect.Response[carrelv1.ReadFileResponse], error) {
	m := &carrelv1.ReadFileResponse{}
	err := s.onWorkspace(ctx, r.Header(), r.Msg.GetWorkspace(), Read, func(fs treepath.FS) (err error) {
		f, err := fs.Open(ctx, pathOf(r.Msg))
		if err != nil {
			return err
		}
		defer f.Close() // only read
		a, err := f.Stat()
		if err != nil {
			return err
		}
		if a.Type == vfs.TypeDir {
			return fmt.Errorf("read %q: %w", pathOf(r.Msg), vfs.ErrIsDir)
		}
		m.Size = a.Size
		from, n := r.Msg.GetOffset(), r.Msg.GetLength()
		if n == 0 {
			n = maxRead
		}
		if from >= a.Size {
			return nil
		}
		m.Data = make([]byte, min(n, maxRead, a.Size-from))
		got, err := f.ReadAt(m.Data, int64(from)) // less than the size of a file
		m.Data = m.Data[:got]
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return err
	})
	return answerTo(m, err)
}

// WriteFile implements carrelv1connect.FilesServiceHandler.
func (s filesService) WriteFile(
	ctx context.Context, r *connect.Request[carrelv1.WriteFileRequest],
) (*connect.Response[carrelv1.WriteFileResponse], error) {
	m := &carrelv1.WriteFileResponse{}
	err := s.onWorkspace(ctx, r.Header(), r.Msg.GetWorkspace(), Write, func(fs treepath.FS) (err error) {
		name := pathOf(r.Msg)
		if r.Msg.Offset != nil {
			return writeRange(ctx, fs, name, r.Msg.GetOffset(), r.Msg.GetData())
		}
		mode := uint32(defaultMode)
		if r.Msg.Mode != nil {
			mode = r.Msg.GetMode()
		}
		if mode&^vfs.ModeMask != 0 {
			return fmt.Errorf("mode %o: %w", mode, vfs.ErrInvalid)
		}
		if r.Msg.GetParents() {
			if err := fs.MkdirAll(ctx, path.Dir(name), 0o755); err != nil {
				return err
			}
		}
		m.Made, err = fs.ReplaceFile(ctx, name, bytes.NewReader(r.Msg.GetData()), mode)
		return err
	})
	return answerTo(m, err)
}

// defaultMode is that of a file that is made.
const defaultMode = 0o644

func writeRange(ctx context.Context, fs treepath.FS, name string, off uint64, data []byte) error {
	if off > math.MaxInt64 {
		return fmt.Errorf("write %q at %d: %w", name, off, vfs.ErrTooBig)
	}
	f, err := fs.OpenFile(ctx, name, treepath.Write, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, int64(off))
	return errors.Join(err, f.Close())
}

// Remove implements carrelv1connect.FilesServiceHandler.
func (s filesService) Remove(
	ctx context.Context, r *connect.Request[carrelv1.RemoveRequest],
) (*connect.Response[carrelv1.RemoveResponse], error) {
	err := s.onWorkspace(ctx, r.Header(), r.Msg.GetWorkspace(), Write, func(fs treepath.FS) error {
		if r.Msg.GetRecursive() {
			return fs.RemoveAll(ctx, pathOf(r.Msg))
		}
		return fs.Remove(ctx, pathOf(r.Msg))
	})
	return answerTo(&carrelv1.RemoveResponse{}, err)
}

// errFull ends a list in which there is no room for more.
var errFull = errors.New("no room for more")

// Diff implements carrelv1connect.FilesServiceHandler. Where to go on is how many differences were told: between two revisions
// they are always the same.
func (s filesService) Diff(
	ctx context.Context, r *connect.Request[carrelv1.DiffRequest],
) (*connect.Response[carrelv1.DiffResponse], error) {
	m := &carrelv1.DiffResponse{}
	err := s.onWatched(ctx, r.Header(), r.Msg.GetWorkspace(), func(w execd.Watched) error {
		after, limit, err := pageOf(r.Msg.GetAfter(), r.Msg.GetLimit())
		if err != nil {
			return err
		}
		n := 0
		rev, err := w.Differences(ctx, vfs.Rev(r.Msg.GetFromRevision()), vfs.Rev(r.Msg.GetToRevision()), func(d execd.Difference) error {
			seen, ok := d.Below(pathOf(r.Msg))
			if !ok {
				return nil
			}
			if n++; n <= after {
				return nil
			}
			if len(m.Changes) == limit {
				m.NextAfter = strconv.Itoa(n - 1)
				return errFull
			}
			m.Changes = append(m.Changes, changeMessage(seen))
			return nil
		})
		m.Revision = uint64(rev)
		if errors.Is(err, errFull) {
			err = nil
		}
		return err
	})
	return answerTo(m, err)
}

// pageOf reads after how many to go on, and how many there may be.
func pageOf(text string, asked uint32) (after, limit int, err error) {
	if text != "" {
		if after, err = strconv.Atoi(text); err != nil || after < 0 {
			return 0, 0, fmt.Errorf("after %q: %w", text, vfs.ErrInvalid)
		}
	}
	if asked == 0 {
		return after, maxChanges, nil
	}
	return after, int(min(asked, maxChanges)), nil
}

// onWatched calls f with a workspace that may be read and knows what changes in it.
func (c Config) onWatched(ctx context.Context, h http.Header, workspace string, f func(w execd.Watched) error) error {
	if err := c.Access.check(h, workspace, Read); err != nil {
		return err
	}
	ws, err := c.Open(ctx, workspace)
	if err != nil {
		return err
	}
	w, ok := ws.(execd.Watched)
	if !ok {
		return errors.Join(fmt.Errorf("changes of workspace %q: %w", workspace, vfs.ErrNotSupported), ws.Close())
	}
	return errors.Join(f(w), ws.Close())
}

// reader is the tools of agents, to look with.
func reader(fs treepath.FS) *tools.Set { return tools.New(tools.Options{FS: fs, ReadOnly: true}) }

// count is a number of the wire as one of the tools.
func count(n uint32) int { return int(min(n, math.MaxInt32)) }

// excludes says what is not to be looked at: nil is what the tools leave out.
func excludes(patterns []string, all bool) []string {
	if len(patterns) == 0 && all {
		return []string{}
	}
	return patterns
}

// Find implements carrelv1connect.FilesServiceHandler.
func (s filesService) Find(
	ctx context.Context, r *connect.Request[carrelv1.FindRequest],
) (*connect.Response[carrelv1.FindResponse], error) {
	m := &carrelv1.FindResponse{}
	err := s.onWorkspace(ctx, r.Header(), r.Msg.GetWorkspace(), Read, func(fs treepath.FS) error {
		found, next, err := reader(fs).Locate(ctx, tools.FindArgs{
			Path: pathOf(r.Msg), Glob: r.Msg.GetGlob(), Type: r.Msg.GetType(),
			Exclude: excludes(r.Msg.GetExclude(), r.Msg.GetAll()), After: r.Msg.GetAfter(), Limit: count(r.Msg.GetLimit()),
		})
		for _, f := range found {
			text, raw := readable(f.Path)
			m.Found = append(m.Found, &carrelv1.Found{Path: text, RawPath: raw, Type: typeNames[f.Type]})
		}
		m.NextAfter = next
		return err
	})
	return answerTo(m, err)
}

// Grep implements carrelv1connect.FilesServiceHandler.
func (s filesService) Grep(
	ctx context.Context, r *connect.Request[carrelv1.GrepRequest],
) (*connect.Response[carrelv1.GrepResponse], error) {
	m := &carrelv1.GrepResponse{}
	err := s.onWorkspace(ctx, r.Header(), r.Msg.GetWorkspace(), Read, func(fs treepath.FS) error {
		q := r.Msg
		result, err := reader(fs).Grep(ctx, tools.GrepArgs{
			Pattern: q.GetPattern(), Fixed: q.GetFixed(), IgnoreCase: q.GetIgnoreCase(), Path: pathOf(q), Glob: q.GetGlob(),
			Exclude: excludes(q.GetExclude(), q.GetAll()), Context: count(q.GetContext()), Files: q.GetFiles(),
			After: q.GetAfter(), Limit: count(q.GetLimit()),
		})
		if err != nil {
			return err
		}
		for _, x := range result.Matches {
			text, raw := readable(x.RawPath)
			m.Matches = append(m.Matches, &carrelv1.Match{
				Path: text, RawPath: raw, Line: uint32(x.Line), Text: x.Text, Context: x.Context, Cut: x.Cut,
			})
		}
		m.Binary, m.NextAfter = uint32(result.Binary), result.NextAfter
		return nil
	})
	return answerTo(m, err)
}
