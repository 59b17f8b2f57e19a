package casstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire/wiretest"
)

// TestAuthorityKit runs the kit that every authority passes.
func TestAuthorityKit(t *testing.T) {
	wiretest.Run(t, func(t *testing.T) wiretest.Subject {
		dir := t.TempDir()
		s, err := Open(dir, Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		w := openWorkspace(t, s, "ws")
		t.Cleanup(func() {
			checkStore(t, s)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return wiretest.Subject{
			Peer: func(n int) (vfs.Authority, vfs.PeerID) {
				sum := sha256.Sum256([]byte{byte(n)})
				return w.Authority(), vfs.PeerID(sum[:])
			},
			Write: func(ctx context.Context, name string, data []byte) error {
				a, err := w.Lookup(ctx, vfs.RootIno, name)
				if errors.Is(err, vfs.ErrNotExist) {
					a, err = w.Create(ctx, vfs.RootIno, name, vfs.NewNode{Mode: 0o644})
				}
				if err == nil {
					_, err = w.SetAttr(ctx, a.Ino, vfs.AttrSet{Mask: vfs.SetSize})
				}
				if err == nil {
					err = w.WriteAt(ctx, a.Ino, data, 0, false)
				}
				return err
			},
			Reopen: func() (err error) {
				if err = s.Close(); err != nil {
					return err
				}
				if s, err = Open(dir, Options{}); err != nil {
					return err
				}
				w, err = s.OpenWorkspace(bg, "ws")
				return err
			},
		}
	})
}
