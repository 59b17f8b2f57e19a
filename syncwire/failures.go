package syncwire

import (
	"net/netip"
	"strconv"
	"sync"
	"time"
)

// failures counts bad tokens by address, so that nobody can try many.
type failures struct {
	mu    sync.Mutex
	addrs map[string]failureCount
	swept time.Time // when old ones were last looked for: with a full table, each failure would be a walk through it
}

type failureCount struct {
	n     int
	since time.Time
}

// countedAs returns what bad tokens are counted by: an IPv4 address, the /64 of an IPv6 address, of which everybody has as
// many as he likes, or a user of this machine.
func (p StreamPeer) countedAs() string {
	if p.Addr == nil {
		return "user " + strconv.Itoa(p.UID)
	}
	ap, err := netip.ParseAddrPort(p.Addr.String())
	if err != nil {
		return p.Transport
	}
	ip := ap.Addr().Unmap()
	if ip.Is6() {
		prefix, _ := ip.WithZone("").Prefix(64)
		return prefix.String()
	}
	return ip.String()
}

// refused reports whether an address has failed too often to be looked at now.
func (f *failures) refused(addr string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.addrs[f.keyLocked(addr)]
	return c.n >= freeFailures && now.Sub(c.since) < failurePause
}

// add counts a failure. The pause begins with the last one that was looked at.
func (f *failures) add(addr string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.addrs == nil {
		f.addrs = make(map[string]failureCount)
	}
	if len(f.addrs) >= maxFailureAddrs && now.Sub(f.swept) >= time.Second {
		f.swept = now
		f.forgetLocked(now)
	}
	key := f.keyLocked(addr)
	c := f.addrs[key]
	if now.Sub(c.since) >= failurePause {
		c.n = 0
	}
	f.addrs[key] = failureCount{c.n + 1, now}
}

// keyLocked is addr, or the count that all share when there are too many.
func (f *failures) keyLocked(addr string) string {
	if _, ok := f.addrs[addr]; !ok && len(f.addrs) >= maxFailureAddrs {
		return "others"
	}
	return addr
}

func (f *failures) forgetLocked(now time.Time) {
	for addr, c := range f.addrs {
		if now.Sub(c.since) >= failurePause {
			delete(f.addrs, addr)
		}
	}
}
