package api

import (
	"fmt"
	"net/http"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Server-sent events, as HTML has them: an event with an id is one that a browser goes on after by itself.

// lastEvent is the id that a request goes on after, zero for none.
func lastEvent(r *http.Request) (id uint64, err error) {
	if last := r.Header.Get("Last-Event-ID") + r.FormValue("after"); last != "" {
		if _, err := fmt.Sscan(last, &id); err != nil {
			return 0, fmt.Errorf("event %q: %w", last, vfs.ErrInvalid)
		}
	}
	return id, nil
}

// beginEvents sends the head of the answer: the first event may come much later.
func beginEvents(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	return http.NewResponseController(w).Flush()
}

// sendEvent sends a message as an event, without an id when that is zero.
func sendEvent(w http.ResponseWriter, id uint64, name string, m proto.Message) error {
	b, err := protojson.Marshal(m)
	if err != nil {
		return err
	}
	if id != 0 {
		if _, err := fmt.Fprintf(w, "id: %d\n", id); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, b); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}
