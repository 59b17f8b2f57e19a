package casstore

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// midway calls once, before the first byte is written.
type midway struct {
	io.Writer
	call func()
}

func (m *midway) Write(p []byte) (int, error) {
	if m.call != nil {
		m.call()
		m.call = nil
	}
	return m.Writer.Write(p)
}

// TestBackupOfRemoved removes forks when the backup has written what is before them: they are in it as they were.
func TestBackupOfRemoved(t *testing.T) {
	from := openStore(t, t.TempDir(), Options{})
	w := openWorkspace(t, from, "ws")
	makeFile(t, w, "large", bulk(1)) // more than is gathered before the first write
	makeFile(t, w, "small", "in line")
	fork := openFork(t, from, "ws", "", "fork")
	makeFile(t, fork, "only here", "x")
	second := openFork(t, from, "fork", "", "second")
	makeFile(t, second, "and here", "y")
	want := everything(t, from)
	if err := errors.Join(second.Close(), fork.Close()); err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	removed := false
	r, err := from.Backup(bg, BackupOptions{}, &midway{Writer: &stream, call: func() {
		removed = true
		if err := errors.Join(from.RemoveWorkspace(bg, "fork"), from.RemoveWorkspace(bg, "second")); err != nil {
			t.Error(err)
		}
	}})
	if err != nil || r.Workspaces != 3 || !removed {
		t.Fatalf("%+v, %v; removed: %v", r, err, removed)
	}
	to := openStore(t, t.TempDir(), Options{})
	load(t, to, stream.Bytes(), LoadOptions{})
	compareAll(t, want, everything(t, to))
}
