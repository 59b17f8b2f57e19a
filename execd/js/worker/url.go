package worker

import (
	"strings"

	"github.com/nlnwa/whatwg-url/url"
)

// urls parses URLs as browsers and node do (url.spec.whatwg.org).
var urls = url.NewParser()

// maxURL bounds a URL, in bytes: parsing one takes many times its memory, which is the worker's and not the module's.
const maxURL = 1 << 20

// parseURL gives the parts of a URL, which with a second argument may be relative to that, or nil when it is none.
func parseURL(args []any) (any, error) {
	u, err := urlOf(args)
	if err != nil {
		return nil, nil
	}
	return partsOf(u), nil
}

func urlOf(args []any) (*url.Url, error) {
	switch {
	case len(str(args, 0))+len(str(args, 1)) > maxURL:
		return nil, errLongURL
	case len(args) > 1:
		return urls.ParseRef(str(args, 1), str(args, 0))
	}
	return urls.Parse(str(args, 0))
}

var errLongURL = &moduleError{codeUnsupported, "the URL is too long"}

// setURL gives the parts of a URL of which one, by its name, has been set. What it cannot be it does not become.
func setURL(args []any) (any, error) {
	u, err := urlOf(args[:1])
	if err != nil {
		return nil, err // it was given by us
	}
	value := str(args, 2)
	if len(value) <= maxURL {
		setters[str(args, 1)](u, value)
	}
	return partsOf(u), nil
}

var setters = map[string]func(*url.Url, string){
	"protocol": (*url.Url).SetProtocol, "username": (*url.Url).SetUsername, "password": (*url.Url).SetPassword,
	"host": (*url.Url).SetHost, "hostname": (*url.Url).SetHostname, "port": (*url.Url).SetPort,
	"pathname": (*url.Url).SetPathname, "search": (*url.Url).SetSearch, "hash": (*url.Url).SetHash,
}

// partsOf are in the order that the prelude has them in.
func partsOf(u *url.Url) []any {
	return []any{u.Href(false), originOf(u), u.Protocol(), u.Username(), u.Password(), u.Host(), u.Hostname(), u.Port(), u.Pathname(),
		u.Search(), u.Hash()}
}

// originOf is the origin of a URL (4.7): opaque origins are "null", and that of a blob is the one of the URL in it.
func originOf(u *url.Url) string {
	switch u.Scheme() {
	case "http", "https", "ws", "wss", "ftp":
		return u.Protocol() + "//" + u.Host()
	case "blob":
		inner, err := urls.Parse(u.Pathname())
		if err == nil && strings.HasPrefix(inner.Scheme(), "http") {
			return originOf(inner)
		}
	}
	return "null"
}
