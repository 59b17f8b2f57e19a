package control_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Backup writes what is asked for, many times over, and fails for a workspace "broken" in the middle.
func (m *memStore) Backup(_ context.Context, o casstore.BackupOptions, w io.Writer) (casstore.BackupReport, error) {
	n, err := io.WriteString(w, strings.Repeat(fmt.Sprintf("%q since %q;", o.Workspaces, o.Since), 10_000))
	if len(o.Workspaces) > 0 && o.Workspaces[0] == "broken" {
		err = fmt.Errorf("chunk\n1: %w", vfs.ErrCorrupt)
	}
	return casstore.BackupReport{Rev: 7, Bytes: uint64(n)}, err
}

// Load takes what does not begin with "no", of which it reads a little only.
func (m *memStore) Load(_ context.Context, o casstore.LoadOptions, r io.Reader) (casstore.LoadReport, error) {
	first := make([]byte, 2)
	if _, err := io.ReadFull(r, first); err != nil || string(first) == "no" {
		return casstore.LoadReport{}, fmt.Errorf("as %q: %w", o.As, vfs.ErrExist)
	}
	n, err := io.Copy(io.Discard, r)
	return casstore.LoadReport{Bytes: 2 + uint64(n)}, err
}

func TestBackup(t *testing.T) {
	store := newMemStore()
	dir, _ := serve(t, store, nil)
	c, ctx := dial(t, dir), t.Context()
	for _, o := range []casstore.BackupOptions{
		{}, {Workspaces: []string{"a b&c=d", "\xff%", "é"}, Since: "2h"},
	} {
		var got, want bytes.Buffer
		r, err := c.Backup(ctx, o, &got)
		local, _ := store.Backup(ctx, o, &want)
		if err != nil || r != local || !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("Backup(%q) = %+v, %v, with %d bytes of %d", o, r, err, got.Len(), want.Len())
		}
	}
	_, err := c.Backup(ctx, casstore.BackupOptions{Workspaces: []string{"broken"}}, io.Discard)
	if !errors.Is(err, vfs.ErrCorrupt) || err.Error() != "chunk\n1: corrupt data" {
		t.Errorf("Backup of what is broken: %v", err)
	}
	stop, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.Backup(stop, casstore.BackupOptions{}, io.Discard); !errors.Is(err, vfs.ErrInterrupted) {
		t.Errorf("Backup that was given up: %v", err)
	}
}

func TestLoad(t *testing.T) {
	dir, _ := serve(t, newMemStore(), nil)
	c, ctx := dial(t, dir), t.Context()
	const size = 3 << 20
	r, err := c.Load(ctx, casstore.LoadOptions{}, strings.NewReader("ye"+strings.Repeat("s", size)))
	if err != nil || r.Bytes != size+2 {
		t.Errorf("Load = %+v, %v", r, err)
	}
	// Why is heard also by who sends more than is wanted.
	_, err = c.Load(ctx, casstore.LoadOptions{As: "x y"}, strings.NewReader("no"+strings.Repeat("o", size)))
	if !errors.Is(err, vfs.ErrExist) || err.Error() != `as "x y": file exists` {
		t.Errorf("Load of what is there: %v", err)
	}
	failed := errors.New("no more")
	if _, err := c.Load(ctx, casstore.LoadOptions{}, iotest.ErrReader(failed)); !errors.Is(err, failed) {
		t.Errorf("Load of what cannot be read: %v", err)
	}
}
