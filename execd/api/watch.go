package api

import (
	"context"
	"net/http"

	"connectrpc.com/connect"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
	carrelv1 "github.com/carrelfs/carrel/execd/api/carrel/v1"
)

// Watch implements carrelv1connect.FilesServiceHandler.
func (s filesService) Watch(
	ctx context.Context, r *connect.Request[carrelv1.WatchRequest], to *connect.ServerStream[carrelv1.WatchResponse],
) error {
	return wireError(s.watch(ctx, r.Header(), r.Msg, to.Send))
}

// watch sends what a request is to be told, until it ends, or what let it in does.
func (c Config) watch(
	ctx context.Context, h http.Header, q *carrelv1.WatchRequest, send func(*carrelv1.WatchResponse) error,
) error {
	access, err := c.Access(ctx, h, q.GetWorkspace(), Read)
	if err != nil {
		return err
	}
	return c.onWatched(ctx, h, q.GetWorkspace(), func(w execd.Watched) error {
		t := &teller{path: pathOf(q), send: send}
		return whileKnown(ctx, access, w.Follow(access, vfs.Rev(q.GetAfterRevision()), t.tell))
	})
}

// teller tells somebody of what changes at a path and below it.
type teller struct {
	path   string
	send   func(*carrelv1.WatchResponse) error
	begun  bool // something was told
	untold int  // pieces of news since that had nothing for them
}

func (t *teller) tell(n execd.News) error {
	m := &carrelv1.WatchResponse{}
	for _, d := range n.Changed {
		seen, ok := d.Below(t.path)
		if !ok {
			continue
		}
		if len(m.Changes) == maxChanges {
			if err := t.send(m); err != nil {
				return err
			}
			m = &carrelv1.WatchResponse{}
		}
		m.Changes = append(m.Changes, changeMessage(seen))
	}
	if t.untold++; t.begun && len(m.Changes) == 0 && len(n.Changed) > 0 && t.untold < maxUntold {
		return nil
	}
	t.begun, t.untold, m.Revision = true, 0, uint64(n.Rev)
	return t.send(m)
}

// watchEvents streams what changes as server-sent events with the name "changes", whose data are carrel.v1.WatchResponse in
// JSON, and whose ids are the revisions from which a browser goes on by itself.
func (p plain) watchEvents(w http.ResponseWriter, r *http.Request) {
	begun := false
	err := p.watchRequest(r, func(m *carrelv1.WatchResponse) error {
		if !begun {
			begun = true
			if err := beginEvents(w); err != nil {
				return err
			}
		}
		return sendEvent(w, m.GetRevision(), "changes", m)
	})
	if !begun {
		HTTPError(w, err)
	}
}

func (p plain) watchRequest(r *http.Request, send func(*carrelv1.WatchResponse) error) error {
	after, err := lastEvent(r)
	if err != nil {
		return err
	}
	q := &carrelv1.WatchRequest{Workspace: r.PathValue("ws"), AfterRevision: after}
	q.Path, q.RawPath = readable(r.FormValue("path"))
	return p.watch(r.Context(), r.Header, q, send)
}
