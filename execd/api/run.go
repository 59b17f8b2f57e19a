package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
	carrelv1 "github.com/carrelfs/carrel/execd/api/carrel/v1"
)

// answer is what POST …/exec gives.
type answer struct {
	ID string `json:"id"`
	execd.Result
	Stdout       string `json:"stdout"`
	Stderr       string `json:"stderr"`
	StdoutBase64 []byte `json:"stdout_base64,omitempty"` // when it is not UTF-8
	StderrBase64 []byte `json:"stderr_base64,omitempty"`
	Truncated    bool   `json:"truncated,omitempty"` // there was more output; it is in the events
}

// run runs something to its end. The exec goes on when the client goes away.
func (p plain) run(w http.ResponseWriter, r *http.Request) {
	a, err := p.runSpec(r)
	if err != nil {
		HTTPError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a) // the client has gone when it fails
}

func (p plain) runSpec(r *http.Request) (*answer, error) {
	name := r.PathValue("ws")
	if err := p.Access.check(r.Header, name, Exec); err != nil {
		return nil, err
	}
	spec, err := readSpec(r)
	if err != nil {
		return nil, err
	}
	spec.Workspace = name
	access, err := p.Access.mayStart(r.Context(), r.Header, spec)
	if err != nil {
		return nil, err
	}
	e, err := p.Execs.Start(r.Context(), spec)
	if err != nil {
		return nil, err
	}
	a, err := collect(access, e)
	return a, whileKnown(r.Context(), access, err)
}

// readSpec reads a spec: a carrel.v1.Spec in JSON, or the query with the body as standard input.
func readSpec(r *http.Request) (execd.Spec, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest+1))
	if err != nil {
		return execd.Spec{}, fmt.Errorf("read the request: %w: %w", vfs.ErrInterrupted, err)
	}
	if len(body) > maxRequest {
		return execd.Spec{}, fmt.Errorf("a request of more than %d bytes: %w", maxRequest, vfs.ErrTooBig)
	}
	q := r.URL.Query()
	if len(q["arg"]) > 0 {
		return execd.Spec{
			ID: q.Get("id"), Backend: q.Get("backend"), Args: q["arg"], Env: q["env"], Dir: q.Get("dir"), Stdin: body,
		}, nil
	}
	var m carrelv1.Spec
	if err := protojson.Unmarshal(body, &m); err != nil {
		return execd.Spec{}, fmt.Errorf("read a spec: %w: %w", vfs.ErrInvalid, err)
	}
	return specOf(&m)
}

// collect waits for the end of an exec and gathers what it wrote.
func collect(ctx context.Context, e *execd.Exec) (*answer, error) {
	r := e.Attach(0, true)
	defer r.Close()
	a := &answer{ID: e.ID()}
	var out, errs strings.Builder
	for {
		event, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch event.Stream {
		case execd.Stdout:
			a.add(&out, event.Data)
		case execd.Stderr:
			a.add(&errs, event.Data)
		case execd.Gap:
			a.Truncated = true
		}
	}
	var err error
	if a.Result, err = e.Wait(ctx); err != nil {
		return nil, err
	}
	a.Stdout, a.StdoutBase64 = readable(out.String())
	a.Stderr, a.StderrBase64 = readable(errs.String())
	return a, nil
}

func (a *answer) add(to *strings.Builder, p []byte) {
	room := min(len(p), maxOutput-to.Len())
	to.Write(p[:room])
	a.Truncated = a.Truncated || room < len(p)
}

func readable(s string) (text string, raw []byte) {
	if utf8.ValidString(s) {
		return s, nil
	}
	return strings.ToValidUTF8(s, "\uFFFD"), []byte(s)
}

// events streams the events of an exec as HTML's server-sent events: their names are those of the field that is set in a
// carrel.v1.Event, which is the data, in JSON, and their ids are the numbers from which a browser goes on by itself.
func (p plain) events(w http.ResponseWriter, r *http.Request) {
	if err := p.streamEvents(w, r); err != nil {
		HTTPError(w, err)
	}
}

func (p plain) streamEvents(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("ws")
	access, err := p.Access(r.Context(), r.Header, name, Exec)
	if err != nil {
		return err
	}
	e, err := p.Execs.Get(r.PathValue("id"))
	if err == nil && e.Info().Spec.Workspace != name {
		err = fmt.Errorf("exec %q of workspace %q: %w", e.ID(), name, vfs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	after, err := lastEvent(r)
	if err != nil {
		return err
	}
	if err := beginEvents(w); err != nil {
		return nil // the client has gone
	}
	from := e.Attach(after, false)
	defer from.Close()
	for {
		event, err := from.Next(access)
		if err != nil {
			return nil // the end, or nobody is left to tell, or to be told
		}
		if err := writeEvent(w, event); err != nil {
			return nil // the client has gone, or attaches again
		}
	}
}

func writeEvent(w http.ResponseWriter, e execd.Event) error {
	m, err := eventMessage(e)
	if err != nil {
		return err
	}
	return sendEvent(w, e.Seq, e.Stream.String(), m)
}
