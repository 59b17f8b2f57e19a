package syncwire_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
)

// oneToken lets one token in.
type oneToken string

func (o oneToken) Verify(_ context.Context, token []byte, _ string) (syncwire.Grant, error) {
	if string(token) != string(o) {
		return syncwire.Grant{}, syncwire.ErrToken
	}
	return syncwire.Grant{Subject: "example", Rights: syncwire.RightRead | syncwire.RightWrite}, nil
}

// connect has a server listen on this machine, and returns a client of it that has the token "secret".
func connect(server *syncwire.Server) (*syncwire.Client, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	identity, err := syncwire.NewIdentity(key)
	if err != nil {
		return nil, err
	}
	listener, err := syncwire.ListenQUIC("127.0.0.1:0", identity)
	if err != nil {
		return nil, err
	}
	go server.Serve(context.Background(), listener) // until the server is closed
	return syncwire.NewClient(syncwire.ClientConfig{
		Dialer:    syncwire.DialQUIC(listener.Addr().String(), identity.Fingerprint()),
		Workspace: "demo",
		Token:     func(context.Context) ([]byte, error) { return []byte("secret"), nil },
	}), nil
}

// pushFile makes a file in the root of a workspace, as a mirror does: an inode under a number that was leased, and a name
// that leads to it, neither of which was there. The root itself stays as it is: it would change for its times only.
func pushFile(ctx context.Context, a vfs.Authority, name, text string) (vfs.Outcome, error) {
	peer := vfs.PeerID{9} // a server knows better, and looks at its own
	leased, err := a.LeaseInos(ctx, peer, 1)
	if err != nil {
		return vfs.Outcome{}, err
	}
	inode := vfs.InodeRecord{
		Type: vfs.TypeRegular, Mode: 0o644, Nlink: 1, Size: uint64(len(text)),
		Body: vfs.Body{Kind: vfs.BodyInline, Data: []byte(text)},
	}
	dirent := vfs.DirentRecord{Ino: leased.First, Type: vfs.TypeRegular}
	push := vfs.Push{Records: []vfs.PushRecord{
		{Record: vfs.Record{Key: vfs.Key{Kind: vfs.KeyInode, Ino: leased.First}, Value: inode.Append(nil)}},
		{Record: vfs.Record{Key: vfs.Key{Kind: vfs.KeyDirent, Ino: vfs.RootIno, Name: name}, Value: dirent.Append(nil)}},
	}}
	rand.Read(push.ID[:])
	return a.Push(ctx, peer, push)
}

// A server needs something that opens workspaces, something that decides on tokens, and a listener.
func ExampleServer() {
	authority := newLedger()
	server := syncwire.NewServer(syncwire.ServerConfig{
		Open: func(_ context.Context, workspace string) (vfs.Authority, error) {
			if workspace != "demo" {
				return nil, vfs.ErrNoWorkspace
			}
			return authority, nil
		},
		Verifier: oneToken("secret"),
	})
	defer server.Close()
	client, err := connect(server)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	welcome, err := client.Welcome(context.Background())
	fmt.Println("may", welcome.Rights, "at revision", welcome.Position.Rev, err)
	// Output: may read,write at revision 1 <nil>
}
