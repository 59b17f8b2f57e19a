package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/cmd/carrel/token"
	"github.com/carrelfs/carrel/syncwire"
)

// peerMain is the program syncpeer of the scripts: a client of a server, with the URL and the token in files.
//
//	syncpeer push URL TOKEN NAME TEXT    make a file in the root
//	syncpeer cat URL TOKEN NAME          print a file in the root
//	syncpeer await URL TOKEN NAME        follow the feed until there is a file of that name in the root
//	syncpeer stay URL TOKEN FILE         follow the feed, and make FILE when it has begun
func peerMain() {
	ctx, cancel := context.WithTimeout(context.Background(), scriptPatience)
	defer cancel()
	if err := runPeer(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "syncpeer:", err)
		cancel()
		os.Exit(1)
	}
}

func runPeer(ctx context.Context, args []string) error {
	client, err := newPeer(args[1], args[2])
	if err != nil {
		return err
	}
	defer client.Close()
	switch args[0] {
	case "push":
		return pushFile(ctx, client, args[3], args[4])
	case "cat":
		return printFile(ctx, client, args[3])
	case "await":
		return follow(ctx, client, &watcher{client: client, name: args[3]})
	case "stay":
		return follow(ctx, client, &watcher{client: client, begun: args[3]})
	}
	return vfs.ErrInvalid
}

func newPeer(urlFile, tokenFile string) (*syncwire.Client, error) {
	url, err := os.ReadFile(urlFile)
	if err != nil {
		return nil, err
	}
	target, err := syncwire.ParseTarget(strings.TrimSpace(string(url)))
	if err != nil {
		return nil, err
	}
	text, err := token.ReadFile(tokenFile)
	if err != nil {
		return nil, err
	}
	return syncwire.NewClient(syncwire.ClientConfig{
		Dialer: syncwire.DialQUIC(target.Addr, target.Pin), Workspace: target.Workspace, Agent: "syncpeer",
		Mirror: [16]byte{1}, Token: func(context.Context) ([]byte, error) { return text, nil },
	}), nil
}

func pushFile(ctx context.Context, a vfs.Authority, name, text string) error {
	leased, err := a.LeaseInos(ctx, vfs.PeerID{}, 1)
	if err != nil {
		return err
	}
	now := vfs.TimeOf(time.Now())
	inode := vfs.InodeRecord{
		Type: vfs.TypeRegular, Mode: 0o644, Nlink: 1, Size: uint64(len(text)), Mtime: now, Ctime: now, Btime: now,
		Body: vfs.Body{Kind: vfs.BodyInline, Data: []byte(text)},
	}
	dirent := vfs.DirentRecord{Ino: leased.First, Type: vfs.TypeRegular}
	push := vfs.Push{Records: []vfs.PushRecord{
		{Record: vfs.Record{Key: vfs.Key{Kind: vfs.KeyInode, Ino: leased.First}, Value: inode.Append(nil)}},
		{Record: vfs.Record{Key: rootName(name), Value: dirent.Append(nil)}},
	}}
	_, _ = rand.Read(push.ID[:])
	outcome, err := a.Push(ctx, vfs.PeerID{}, push)
	if err == nil && !outcome.Applied() {
		err = vfs.ErrStale
	}
	return err
}

func rootName(name string) vfs.Key { return vfs.Key{Kind: vfs.KeyDirent, Ino: vfs.RootIno, Name: name} }

func printFile(ctx context.Context, a vfs.Authority, name string) error {
	b, err := valueOf(ctx, a, rootName(name))
	if err != nil {
		return err
	}
	dirent, err := vfs.DecodeDirent(b)
	if err != nil {
		return err
	}
	if b, err = valueOf(ctx, a, vfs.Key{Kind: vfs.KeyInode, Ino: dirent.Ino}); err != nil {
		return err
	}
	inode, err := vfs.DecodeInode(b)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(inode.Body.Data)
	return err
}

func valueOf(ctx context.Context, a vfs.Authority, k vfs.Key) ([]byte, error) {
	records, _, err := a.Get(ctx, []vfs.Key{k})
	if err == nil && records[0].Value == nil {
		err = fmt.Errorf("%v: %w", k, vfs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	return records[0].Value, nil
}

// watcher follows a feed from the beginning.
type watcher struct {
	client *syncwire.Client
	name   string // ends when there is a file of that name
	begun  string // is made when something has come
	seen   bool
	cursor vfs.Cursor
}

var errSeen = errors.New("seen")

func follow(ctx context.Context, c *syncwire.Client, w *watcher) error {
	err := c.Follow(ctx, vfs.AllInos, w)
	if errors.Is(err, errSeen) {
		return nil
	}
	return err
}

func (w *watcher) Resume() (vfs.Cursor, vfs.Ino)   { return w.cursor, 0 }
func (w *watcher) Begin(_ syncwire.FeedPart) error { return nil }

func (w *watcher) Records(records []vfs.Record) error {
	for _, r := range records {
		w.seen = w.seen || w.name != "" && r.Key == rootName(w.name)
	}
	return nil
}

func (w *watcher) Update(u syncwire.FeedUpdate) error {
	w.cursor = u.Position.Cursor
	w.client.Acknowledge(w.cursor.Rev)
	if w.seen {
		return errSeen
	}
	if w.begun != "" {
		return os.WriteFile(w.begun, nil, 0o600)
	}
	return nil
}
