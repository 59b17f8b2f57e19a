package control

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/carrelfs/carrel/casstore"
)

// Backups are long streams of one direction, so they travel as bodies of requests beside the frames:
//
//	POST /backup?workspace=…&since=…   is answered with the stream, and an outcome as the trailer
//	POST /load?as=…                    takes the stream, and is answered with an outcome
//
// An outcome is JSON in one line.
const (
	backupPath     = "/backup"
	loadPath       = "/load"
	outcomeTrailer = "Carrel-Outcome"
)

// streamOutcome is what has become of a backup or a load.
type streamOutcome struct {
	Code   code
	Text   string
	Backup *casstore.BackupReport `json:",omitempty"`
	Load   *casstore.LoadReport   `json:",omitempty"`
}

func (s *Server) backup(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	w.Header().Set("Trailer", outcomeTrailer)
	report, err := s.store.Backup(r.Context(), casstore.BackupOptions{Workspaces: q["workspace"], Since: q.Get("since")}, w)
	o := streamOutcome{Backup: &report}
	o.Code, o.Text = encodeError(err)
	b, err := json.Marshal(o)
	if err != nil {
		panic(err) // of numbers and a string
	}
	w.Header().Set(outcomeTrailer, string(b))
}

func (s *Server) load(w http.ResponseWriter, r *http.Request) {
	report, err := s.store.Load(r.Context(), casstore.LoadOptions{As: r.URL.Query().Get("as")}, r.Body)
	o := streamOutcome{Load: &report}
	o.Code, o.Text = encodeError(err)
	// A client that is cut off while it sends would not hear why.
	_, _ = io.Copy(io.Discard, r.Body)
	if err := json.NewEncoder(w).Encode(o); err != nil {
		s.log.Warn("control: answer a load", "err", err)
	}
}
