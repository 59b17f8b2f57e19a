package gitremote

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/file"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/carrelfs/carrel/execd/shell/command/git"
)

// Remotes are the repositories that scripts may reach. It is safe for concurrent use.
type Remotes struct {
	where string // the list, as people know it
	list  func() ([]string, error)
	web   transport.Transport
	files transport.Transport
}

var _ transport.Transport = (*Remotes)(nil)

// New returns the repositories that a list allows. list is asked each time that a script wants one; its error is what
// the script is told then. where is what people are told of the list when something is not on it.
func New(where string, list func() ([]string, error)) *Remotes {
	r := &Remotes{where: where, list: list, files: file.NewClient(transport.UploadPackServiceName, transport.ReceivePackServiceName)}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.DisableKeepAlives = true // a script asks twice
	base.ResponseHeaderTimeout = patience
	r.web = githttp.NewClient(&http.Client{Transport: gate{r, base}})
	return r
}

// NewUploadPackSession implements [transport.Transport]: git.ErrNotAllowed for what is not on the list.
func (r *Remotes) NewUploadPackSession(ep *transport.Endpoint, auth transport.AuthMethod) (transport.UploadPackSession, error) {
	t, err := r.through(ep)
	if err != nil {
		return nil, err
	}
	return t.NewUploadPackSession(ep, auth)
}

// NewReceivePackSession implements [transport.Transport]: git.ErrNotAllowed for what is not on the list.
func (r *Remotes) NewReceivePackSession(ep *transport.Endpoint, auth transport.AuthMethod) (transport.ReceivePackSession, error) {
	t, err := r.through(ep)
	if err != nil {
		return nil, err
	}
	return t.NewReceivePackSession(ep, auth)
}

// through picks the transport for an endpoint that is allowed.
func (r *Remotes) through(ep *transport.Endpoint) (transport.Transport, error) {
	if ep.Protocol != "file" {
		u, err := url.Parse(ep.String())
		if err != nil {
			return nil, r.refusal()
		}
		return r.web, r.check(u)
	}
	if err := r.check(&url.URL{Scheme: "file", Path: ep.Path}); err != nil {
		return nil, err
	}
	// Only a path without symlinks says where it leads.
	real, err := filepath.EvalSymlinks(ep.Path)
	if err != nil {
		return nil, transport.ErrRepositoryNotFound
	}
	if err := r.checkReal(real); err != nil {
		return nil, err
	}
	ep.Path = real
	return r.files, nil
}

// entries reads the list.
func (r *Remotes) entries() ([]entry, error) {
	texts, err := r.list()
	if err != nil {
		return nil, err
	}
	var all []entry
	for _, text := range texts {
		e, err := parseEntry(text)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// check refuses a URL that is not on the list.
func (r *Remotes) check(u *url.URL) error {
	all, err := r.entries()
	if err != nil {
		return err
	}
	o, ok := entryOf(u)
	if !ok || !slices.ContainsFunc(all, func(e entry) bool { return e.holds(o) }) {
		return r.refusal()
	}
	return nil
}

// refusal says where somebody could allow it.
func (r *Remotes) refusal() error {
	return fmt.Errorf("%w: it is not in %s", git.ErrNotAllowed, r.where)
}

// checkReal refuses a directory of the host that is in none of the list's, wherever symlinks lead.
func (r *Remotes) checkReal(real string) error {
	all, err := r.entries()
	if err != nil {
		return err
	}
	for _, e := range all {
		if e.scheme != "file" {
			continue
		}
		dir, err := filepath.EvalSymlinks(e.path)
		if err == nil && (real == dir || strings.HasPrefix(real, strings.TrimSuffix(dir, "/")+"/")) {
			return nil
		}
	}
	return r.refusal()
}

// gate lets requests through to what is allowed, wherever a server has sent them.
type gate struct {
	remotes *Remotes
	base    http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (g gate) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := g.remotes.check(req.URL); err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // nothing was read of it
		}
		return nil, err
	}
	res, err := g.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	limit := int64(maxPack)
	switch {
	case res.StatusCode < 200 || res.StatusCode > 299:
		limit = maxFault
	case req.Method == http.MethodGet:
		limit = maxRefs
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(res.Body, limit), res.Body}
	return res, nil
}
