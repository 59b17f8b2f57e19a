package serving

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/api"
	"github.com/carrelfs/carrel/syncwire"
)

// apiHandler is the API of execs and files for other machines, by token.
func (r *running) apiHandler(register func(func(string, http.Handler), api.Access)) http.Handler {
	mux := http.NewServeMux()
	register(mux.Handle, r.access)
	return mux
}

// byHTTP3 is the option of a listener by which the API is served at its address, too. Who has no key that the sessions there
// need is not let in.
func (r *running) byHTTP3(h http.Handler) syncwire.ListenOption {
	if r.keys == nil {
		return syncwire.WithHTTP(h, nil)
	}
	return syncwire.WithHTTP(h, r.keys.knows)
}

// newAPI serves the API over TLS with the server's key, and tells clients that they can have it by HTTP/3.
func (r *running) newAPI(h http.Handler, id syncwire.Identity) *http.Server {
	_, port, err := net.SplitHostPort(r.options.Listen)
	if err != nil {
		panic(err) // it is being listened at
	}
	elsewhere := fmt.Sprintf(`h3=":%s"; ma=%d`, port, int(altSvcAge.Seconds()))
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Alt-Svc", elsewhere) // RFC 7838
			h.ServeHTTP(w, r)
		}),
		TLSConfig: id.TLS("h2", "http/1.1"), ReadHeaderTimeout: scrapeTimeout,
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
