package badlink

import (
	"net/netip"
	"sync"
	"testing"
)

// Network is two namespaces and the link between them.
type Network struct {
	Client, Server *Namespace

	t      testing.TB
	relays [2]*relay // to the server, to the client

	mu      sync.Mutex
	address netip.Addr // of the client
}

// ServerAddr is the address of the server's namespace.
var ServerAddr = netip.AddrFrom4([4]byte{10, 77, 0, 1})

// New makes a network, which is there until the test ends. It takes root.
func New(t testing.TB, c Config) *Network {
	t.Helper()
	address := ServerAddr.Next()
	n := &Network{t: t, Client: newNamespace(t, address), Server: newNamespace(t, ServerAddr), address: address}
	n.relays = [2]*relay{newRelay(c, 0, n.Client.tun, n.Server.tun), newRelay(c, 1, n.Server.tun, n.Client.tun)}
	var group sync.WaitGroup
	for _, r := range n.relays {
		group.Go(r.receive)
		group.Go(r.deliver)
	}
	t.Cleanup(func() {
		n.Client.tun.Close()
		n.Server.tun.Close()
		group.Wait()
	})
	return n
}

// SetCut cuts the link, or mends it. What is under way still arrives.
func (n *Network) SetCut(cut bool) {
	for _, r := range n.relays {
		r.setCut(cut)
	}
}

// Move gives the client's namespace another address; the old one is gone.
func (n *Network) Move() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.address = n.address.Next()
	if err := n.Client.setAddr(n.address); err != nil {
		n.t.Error(err)
	}
}

// Leave takes the client's namespace its address, and so its route: what it sends is refused, until Move.
func (n *Network) Leave() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.Client.dropAddr(); err != nil {
		n.t.Error(err)
	}
}

// ClientAddr is the address of the client's namespace now.
func (n *Network) ClientAddr() netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.address
}

// Counts returns what became of the packets to the server, and of those to the client.
func (n *Network) Counts() (up, down Count) { return n.relays[0].counted(), n.relays[1].counted() }
