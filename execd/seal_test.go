package execd

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

func newSeal(t *testing.T, key byte) seal {
	t.Helper()
	block, err := aes.NewCipher(bytes.Repeat([]byte{key}, 32))
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		t.Fatal(err)
	}
	if aead.Overhead() != sealMost {
		t.Fatalf("the cipher adds %d bytes, want %d", aead.Overhead(), sealMost)
	}
	return seal{aead}
}

// filesHave reports whether any file of a directory has some bytes.
func filesHave(t *testing.T, dir string, want []byte) (found bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	return slices.ContainsFunc(files, func(path string) bool {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(b, want)
	})
}

// A sealed log and state are read as they were written, by who has the key, and by nobody else.
func TestSeal(t *testing.T) {
	dir, key, other := t.TempDir(), newSeal(t, 1), newSeal(t, 2)
	l := newLog(dir, 16<<10, key)
	secret := []byte("secret output")
	for range 1000 {
		l.Write(Stdout, secret)
	}
	if err := l.finish(); err != nil {
		t.Fatal(err)
	}
	all := readAll(t, l, 0)
	if last := all[len(all)-1]; !bytes.Equal(last.Data, secret) || last.Seq != 1000 {
		t.Errorf("the last event is %+v", last)
	}
	rec := record{Spec: Spec{Args: []string{"secret argument"}}, State: StateRunning, Created: time.Unix(1, 0).UTC()}
	if err := writeState(dir, rec, key); err != nil {
		t.Fatal(err)
	}
	if filesHave(t, dir, []byte("secret")) {
		t.Error("the files have what is secret")
	}
	if got, err := readState(dir, key); err != nil || got.State != rec.State || !slices.Equal(got.Spec.Args, rec.Spec.Args) {
		t.Errorf("state %+v, %v", got, err)
	}
	again, result, err := resumeLog(dir, 16<<10, key)
	if err != nil || result != nil {
		t.Fatal(result, err)
	}
	if last, _, _ := again.sizes(); last != 1000 {
		t.Errorf("resumed after event %d", last)
	}
	if err := again.end([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	if end := readAll(t, again, 1000); len(end) != 1 || end[0].Stream != Exited || string(end[0].Data) != "{}" {
		t.Errorf("the end is %+v", end)
	}

	if _, err := readState(dir, other); !errors.Is(err, vfs.ErrCorrupt) {
		t.Errorf("the state with another key: %v", err)
	}
	stolen, err := openLog(dir, record{Last: 1001}, other)
	if err != nil {
		t.Fatal(err)
	}
	r := stolen.Attach(0, false)
	defer r.Close()
	if e, err := r.Next(t.Context()); !errors.Is(err, vfs.ErrCorrupt) {
		t.Errorf("the log with another key: %+v, %v", e, err)
	}
}
