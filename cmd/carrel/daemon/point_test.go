package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/fusefs"
)

func TestCheckPoint(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(root, name) }
	for _, dir := range []string{"a/store/badger", "empty", "full/sub", "a/store-beside"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(at("file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]error{
		at("empty"):           nil,
		at("none"):            nil,
		at("a/store-beside"):  nil,
		at("full"):            vfs.ErrNotEmpty,
		at("file"):            vfs.ErrNotDir,
		at("file/x"):          vfs.ErrNotDir,
		at("a/store"):         vfs.ErrInvalid,
		at("a/store/badger"):  vfs.ErrInvalid,
		at("a/store/packs/x"): vfs.ErrInvalid,
		at("a"):               vfs.ErrInvalid,
		root:                  vfs.ErrInvalid,
		"/":                   vfs.ErrInvalid,
	} {
		err := CheckPoint(at("a/store"), dir)
		if !errors.Is(err, want) {
			t.Errorf("CheckPoint(%s) = %v, want %v", dir, err, want)
		}
		var m *fusefs.MountError
		if err != nil && (!errors.As(err, &m) || m.Advice == "") {
			t.Errorf("CheckPoint(%s) does not say what to do: %v", dir, err)
		}
	}
}
