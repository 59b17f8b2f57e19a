package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

// fileCall answers a request with what is at a path.
type fileCall func(w http.ResponseWriter, r *http.Request, fs treepath.FS, path string) error

// reading opens the workspace of a request for a call.
func (p plain) reading(call fileCall) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := p.onFile(r, Read, func(fs treepath.FS, path string) error { return call(w, r, fs, path) })
		if err != nil {
			HTTPError(w, err)
		}
	})
}

// fileChange changes what is at a path as a request says, and returns the status to answer with.
type fileChange func(r *http.Request, fs treepath.FS, path string) (status int, err error)

// changing opens the workspace of a request for a change. It answers when every mount shows that.
func (p plain) changing(change fileChange) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var status int
		err := p.onFile(r, Write, func(fs treepath.FS, path string) (err error) {
			status, err = change(r, fs, path)
			return err
		})
		if err != nil {
			HTTPError(w, err)
			return
		}
		w.WriteHeader(status)
	})
}

func (p plain) onFile(r *http.Request, right Right, f func(fs treepath.FS, path string) error) error {
	return p.onWorkspace(r.Context(), r.Header, r.PathValue("ws"), right, func(fs treepath.FS) error {
		return f(fs, "/"+r.PathValue("path"))
	})
}

// get answers with the bytes of a file, or of the ranges of it that were asked for, or with what is in a directory.
func (p plain) get(w http.ResponseWriter, r *http.Request, fs treepath.FS, path string) error {
	f, err := fs.Open(r.Context(), path)
	if err != nil {
		return err
	}
	defer f.Close() // only read
	a, err := f.Stat()
	if err != nil {
		return err
	}
	if a.Type == vfs.TypeDir {
		return list(w, r, fs, path)
	}
	h := w.Header()
	h.Set("Etag", fmt.Sprintf(`"%d-%d-%d"`, a.Ino, a.Size, a.Mtime.Go().UnixNano()))
	h.Set("Carrel-Mode", fmt.Sprintf("%04o", a.Mode))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", a.Mtime.Go(), f)
	return nil
}

// entry is a name in a directory, as JSON.
type entry struct {
	Name  []byte    `json:"name_base64,omitempty"` // when it is not UTF-8
	Text  string    `json:"name"`
	Type  string    `json:"type"`
	Mode  string    `json:"mode"`
	Size  uint64    `json:"size"`
	Mtime time.Time `json:"mtime"`
}

var typeNames = map[vfs.Type]string{
	vfs.TypeRegular: "file", vfs.TypeDir: "dir", vfs.TypeSymlink: "symlink", vfs.TypeFIFO: "fifo", vfs.TypeSocket: "socket",
	vfs.TypeCharDev: "char", vfs.TypeBlockDev: "block",
}

// list answers with one entry a line.
func list(w http.ResponseWriter, r *http.Request, fs treepath.FS, dir string) error {
	entries, err := fs.ReadDirMost(r.Context(), dir, maxListing)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/jsonl")
	e := json.NewEncoder(w)
	for _, d := range entries {
		a, err := fs.Lstat(r.Context(), path.Join(dir, d.Name))
		if errors.Is(err, vfs.ErrNotExist) {
			continue // it went meanwhile
		}
		if err != nil {
			return err
		}
		x := entry{Type: typeNames[a.Type], Mode: fmt.Sprintf("%04o", a.Mode), Size: a.Size, Mtime: a.Mtime.Go()}
		x.Text, x.Name = readable(d.Name)
		if err := e.Encode(x); err != nil {
			return nil // the client has gone
		}
	}
	return nil
}

// put writes a whole file: others see the old bytes or the new ones. With ?parents=true directories are made too, and
// ?mode= is that of a file that is made; one that is replaced keeps its own.
func (p plain) put(r *http.Request, fs treepath.FS, name string) (status int, err error) {
	mode := uint64(defaultMode)
	if m := r.FormValue("mode"); m != "" {
		if mode, err = strconv.ParseUint(m, 8, 12); err != nil {
			return 0, fmt.Errorf("mode %q: %w", m, vfs.ErrInvalid)
		}
	}
	if r.FormValue("parents") == "true" {
		if err := fs.MkdirAll(r.Context(), path.Dir(name), 0o755); err != nil {
			return 0, err
		}
	}
	made, err := fs.ReplaceFile(r.Context(), name, r.Body, uint32(mode))
	if made {
		return http.StatusCreated, err
	}
	return http.StatusNoContent, err
}

// remove removes a file or an empty directory, or with ?recursive=true all that is in it.
func (p plain) remove(r *http.Request, fs treepath.FS, path string) (status int, err error) {
	remove := fs.Remove
	if r.FormValue("recursive") == "true" {
		remove = fs.RemoveAll
	}
	return http.StatusNoContent, remove(r.Context(), path)
}
