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

// fileCall serves one request for a path.
type fileCall func(w http.ResponseWriter, r *http.Request, fs treepath.FS, path string) error

// file opens the workspace of a request for a call.
func (p plain) file(right Right, call fileCall) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := p.onFile(w, r, right, call); err != nil {
			HTTPError(w, err)
		}
	})
}

func (p plain) onFile(w http.ResponseWriter, r *http.Request, right Right, call fileCall) error {
	return p.onWorkspace(r.Context(), r.Header, r.PathValue("ws"), right, func(fs treepath.FS) error {
		return call(w, r, fs, "/"+r.PathValue("path"))
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
func (p plain) put(w http.ResponseWriter, r *http.Request, fs treepath.FS, name string) error {
	mode := uint64(defaultMode)
	if m := r.FormValue("mode"); m != "" {
		var err error
		if mode, err = strconv.ParseUint(m, 8, 12); err != nil {
			return fmt.Errorf("mode %q: %w", m, vfs.ErrInvalid)
		}
	}
	if r.FormValue("parents") == "true" {
		if err := fs.MkdirAll(r.Context(), path.Dir(name), 0o755); err != nil {
			return err
		}
	}
	made, err := fs.ReplaceFile(r.Context(), name, r.Body, uint32(mode))
	if err != nil {
		return err
	}
	if made {
		w.WriteHeader(http.StatusCreated)
	} else {
		w.WriteHeader(http.StatusNoContent)
	}
	return nil
}

// remove removes a file or an empty directory, or with ?recursive=true all that is in it.
func (p plain) remove(w http.ResponseWriter, r *http.Request, fs treepath.FS, path string) error {
	remove := fs.Remove
	if r.FormValue("recursive") == "true" {
		remove = fs.RemoveAll
	}
	if err := remove(r.Context(), path); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
