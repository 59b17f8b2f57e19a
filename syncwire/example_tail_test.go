package syncwire_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
)

// tail prints what changes, as it does. It is where a mirror would write to its own store: records between Begin and Update
// belong to no revision yet, and what Resume returns must be what is on disk.
type tail struct {
	cursor vfs.Cursor
	seen   func(vfs.Rev) error // an error ends the feed
}

// Resume is asked whenever a connection was made. The zero cursor asks for everything that there is, to begin with.
func (t *tail) Resume() (vfs.Cursor, vfs.Ino) { return t.cursor, 0 }

func (t *tail) Begin(part syncwire.FeedPart) error {
	if part.Since == 0 {
		fmt.Println("everything:")
		return nil
	}
	fmt.Println("changed since revision", part.Since)
	return nil
}

func (t *tail) Records(records []vfs.Record) error {
	for _, r := range records {
		fmt.Println(" ", r.Key, "of revision", r.Rev)
	}
	return nil
}

func (t *tail) Update(u syncwire.FeedUpdate) error {
	fmt.Println("is revision", u.Position.Rev)
	t.cursor = u.Position.Cursor
	return t.seen(t.cursor.Rev)
}

// A client that tails a workspace: first what there is, then each change as it is made, whatever becomes of the connection.
func ExampleClient_Follow() {
	authority := newLedger()
	server := syncwire.NewServer(syncwire.ServerConfig{
		Open:     func(context.Context, string) (vfs.Authority, error) { return authority, nil },
		Verifier: oneToken("secret"),
	})
	defer server.Close()
	client, err := connect(server)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx := context.Background()
	enough := errors.New("enough")
	err = client.Follow(ctx, vfs.AllInos, &tail{seen: func(rev vfs.Rev) error {
		if rev > 1 {
			return enough
		}
		_, err := pushFile(ctx, authority, "hello.txt", "hello") // somebody else makes a file
		return err
	}})
	fmt.Println(err)
	// Output:
	// everything:
	//   inode 1 of revision 1
	// is revision 1
	// changed since revision 1
	//   name 1/"hello.txt" of revision 2
	//   inode 2 of revision 2
	// is revision 2
	// enough
}
