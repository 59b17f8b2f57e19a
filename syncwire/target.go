package syncwire

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// DefaultPort is the port of a server, UDP and TCP.
const DefaultPort = "4477"

// Target is what a carrel:// URL says: a server, the key that it must have, and a workspace.
type Target struct {
	Addr      string      // host:port
	Pin       Fingerprint // zero when the URL has none
	Workspace string
}

// ParseTarget reads carrel://[FINGERPRINT@]host[:port]/workspace.
func ParseTarget(s string) (Target, error) {
	u, err := url.Parse(s)
	if err != nil {
		return Target{}, fmt.Errorf("%w: %w", vfs.ErrInvalid, err)
	}
	workspace := strings.TrimPrefix(u.Path, "/")
	switch {
	case u.Scheme != "carrel":
		return Target{}, fmt.Errorf("%q does not begin with carrel://: %w", s, vfs.ErrInvalid)
	case !isHost(u.Hostname()):
		return Target{}, fmt.Errorf("%q names no host: %w", s, vfs.ErrInvalid)
	case workspace == "" || strings.Contains(workspace, "/") || len(workspace) > maxWorkspace:
		return Target{}, fmt.Errorf("%q names no workspace: %w", s, vfs.ErrInvalid)
	case u.RawQuery != "" || u.Fragment != "":
		return Target{}, fmt.Errorf("%q goes on behind the workspace: %w", s, vfs.ErrInvalid)
	}
	port := u.Port()
	if port == "" {
		port = DefaultPort
	}
	t := Target{Addr: net.JoinHostPort(u.Hostname(), port), Workspace: workspace}
	if u.User == nil {
		return t, nil
	}
	if _, ok := u.User.Password(); ok {
		return Target{}, fmt.Errorf("%q has a password: %w", s, vfs.ErrInvalid)
	}
	t.Pin, err = ParseFingerprint(u.User.Username())
	return t, err
}

// isHost reports whether s may be a host of a URL: text in one word, and of what has a colon in it only an address of IPv6.
// Whether there is such a host, the resolver knows.
func isHost(s string) bool {
	odd := func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }
	if s == "" || !utf8.ValidString(s) || strings.ContainsFunc(s, odd) {
		return false
	}
	if strings.Contains(s, ":") {
		_, err := netip.ParseAddr(s)
		return err == nil
	}
	return true
}

// String is the inverse of ParseTarget.
func (t Target) String() string {
	u := url.URL{Scheme: "carrel", Host: t.Addr, Path: "/" + t.Workspace}
	if t.Pin != (Fingerprint{}) {
		u.User = url.User(t.Pin.String())
	}
	return u.String()
}
