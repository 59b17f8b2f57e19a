package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// holdPath is where a client asks the daemon to stay, on the control socket.
const holdPath = "/hold"

// hold keeps the daemon there for as long as the request lasts.
func (t *table) hold(w http.ResponseWriter, r *http.Request) {
	release, err := t.keep()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer release()
	if err := http.NewResponseController(w).Flush(); err != nil {
		return // the client has gone
	}
	<-r.Context().Done()
}

// Hold keeps the daemon of a store there until release is called, as a mount does: a connection alone does not keep it
// from ending after something else that it was there for. vfs.ErrClosed when it is ending already.
func Hold(ctx context.Context, store string) (release func() error, err error) {
	conn, err := control.DialSocket(ctx, store)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // past: it fails at once
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: carrel\r\n\r\n", holdPath)
	if err == nil {
		err = readHeld(conn)
	}
	if !stop() {
		err = vfs.ErrInterrupted
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("have the daemon stay: %w", err), conn.Close())
	}
	return conn.Close, nil
}

func readHeld(conn io.Reader) error {
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return fmt.Errorf("%w: %w", vfs.ErrClosed, err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s: %w", answer.Status, vfs.ErrClosed)
	}
	return nil // the body has no end
}
