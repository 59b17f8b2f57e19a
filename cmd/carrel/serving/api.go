package serving

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/api"
	"github.com/carrelfs/carrel/syncwire"
)

// newAPI is the API of execs and files for other machines: over TLS with the server's key, and by token.
func (r *running) newAPI(register func(func(string, http.Handler), api.Access), id syncwire.Identity) *http.Server {
	mux := http.NewServeMux()
	register(mux.Handle, r.access)
	return &http.Server{
		Handler: mux, TLSConfig: id.TLS("h2", "http/1.1"), ReadHeaderTimeout: scrapeTimeout,
		ErrorLog: slog.NewLogLogger(r.log.Handler(), slog.LevelDebug),
	}
}

// serveAPI serves it until ctx ends.
func (r *running) serveAPI(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = r.api.Close() }) // Serve returns then
	defer stop()
	if err := r.api.ServeTLS(r.sockets.api, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// rightsFor are the rights of a token for those of the API.
var rightsFor = map[api.Right]syncwire.Rights{
	api.Read: syncwire.RightRead, api.Write: syncwire.RightWrite, api.Exec: syncwire.RightExec,
	api.Admin: syncwire.RightAdmin,
}

// access is api.Access by the tokens of the store, in the header "Authorization: Bearer TOKEN".
func (r *running) access(ctx context.Context, h http.Header, workspace string, right api.Right) (context.Context, error) {
	text, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	if !ok {
		return nil, api.ErrUnknown
	}
	grant, err := r.tokens.Verify(ctx, []byte(text), workspace)
	if err != nil {
		return nil, api.ErrUnknown
	}
	if only := r.options.Workspaces; only != nil && !slices.Contains(only, workspace) {
		return nil, vfs.ErrNoWorkspace
	}
	if !grant.Rights.Has(rightsFor[right]) {
		return nil, vfs.ErrNotPermitted
	}
	while, _ := grant.Bind(ctx) // which ends with the request
	return while, nil
}
