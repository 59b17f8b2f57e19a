package gitremote

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// entry is one URL of a list.
type entry struct {
	scheme, host string // host with its port; "" for a file
	path         string // clean, without a slash at its end
}

var defaultPorts = map[string]string{"http": "80", "https": "443"}

// parseEntry reads an entry of a list: vfs.ErrInvalid for what is none.
func parseEntry(text string) (entry, error) {
	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return entry{}, fmt.Errorf("%q is not the URL of git repositories: %w", text, vfs.ErrInvalid)
	}
	e, ok := entryOf(u)
	if !ok || e.scheme != "file" && u.Hostname() == "" || e.scheme == "file" && e.path == "" {
		return entry{}, fmt.Errorf("%q is not the URL of git repositories: %w", text, vfs.ErrInvalid)
	}
	return e, nil
}

// entryOf takes what counts out of a URL. It is not ok when that may mean one thing here and another at a server.
func entryOf(u *url.URL) (entry, bool) {
	e := entry{scheme: strings.ToLower(u.Scheme), path: strings.TrimRight(u.Path, "/")}
	switch e.scheme {
	case "http", "https":
		port := u.Port()
		if port == "" {
			port = defaultPorts[e.scheme]
		}
		e.host = net.JoinHostPort(strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), port)
	case "file":
		if u.Host != "" && u.Host != "localhost" {
			return e, false
		}
	default:
		return e, false
	}
	if e.path != "" && (!strings.HasPrefix(e.path, "/") || path.Clean(e.path) != e.path) {
		return e, false
	}
	escaped := strings.ToLower(u.EscapedPath())
	for _, odd := range []string{"%2f", "%2e", "%5c", "%00", `\`} {
		if strings.Contains(escaped, odd) {
			return e, false
		}
	}
	return e, true
}

// holds says whether an entry lets scripts reach what another one names.
func (e entry) holds(o entry) bool {
	return e.scheme == o.scheme && e.host == o.host && (o.path == e.path || strings.HasPrefix(o.path, e.path+"/"))
}
