package casstore

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

var testKey = func() []byte {
	sum := sha256.Sum256([]byte("a key"))
	return sum[:]
}()

// What a tree promises of what is stored holds in an encrypted store.
func TestEncryptedConformance(t *testing.T) {
	stored := func(name string) bool {
		group, _, _ := strings.Cut(name, "/")
		return slices.Contains([]string{"Content", "Copy", "Durable", "Seek", "Xattr"}, group)
	}
	vfstest.RunSome(t, stored, workspacesOf(openStore(t, t.TempDir(), Options{Key: testKey})))
}

func TestEncryptedDamage(t *testing.T) { testDamage(t, testKey) }

func TestEncryptedTornCommit(t *testing.T) {
	testTornCommit(tornStore{t: t, dir: t.TempDir(), key: testKey}, 6)
}

// secrets fills a workspace with what must not be found in the store's files: bytes and names of every kind, in every place
// where they can be.
func secrets(t *testing.T, s *Store) (list []string) {
	t.Helper()
	w := openWorkspace(t, s, "ws-secret-workspace")
	secret := func(what string) string {
		list = append(list, what)
		return what
	}
	list = append(list, "ws-secret-workspace")
	inline := makeFile(t, w, secret("secret-name-of-a-file"), secret("secret-inline-content"))
	long := bytes.Repeat([]byte("."), 300_000)
	copy(long[1000:], secret("secret-in-a-chunk"))
	makeFile(t, w, "long", string(long))
	raw := []byte(bulk(9)) // does not compress
	copy(raw[5000:], secret("secret-in-a-raw-chunk"))
	large := makeFile(t, w, "raw", string(raw))
	list = append(list, string(raw[100:120]))
	_, err := w.Symlink(bg, vfs.RootIno, secret("secret-name-of-a-link"), secret("secret-target"), vfs.NewNode{})
	if err == nil {
		err = w.SetXattr(bg, inline, "user."+secret("secret-attribute"), []byte(secret("secret-value")), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateSnapshot(bg, "ws-secret-workspace", secret("secret-snapshot"), secret("secret message")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fork(bg, "ws-secret-workspace", "", secret("secret-fork")); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteAt(bg, large, []byte(secret("secret-in-the-journal")), 70_000, false); err != nil {
		t.Fatal(err)
	}
	if err := w.Fsync(bg, large); err != nil {
		t.Fatal(err)
	}
	// What a chunk is named by is a secret as well: who knows a file could look whether it is here.
	if err := w.Sync(bg); err != nil {
		t.Fatal(err)
	}
	r := s.reader()
	defer r.Close()
	err = r.scan([]byte{keyChunk}, nil, false, func(key, _ []byte) (bool, error) {
		list = append(list, string(key[1:17]))
		return true, nil
	})
	if err != nil || len(list) < 20 {
		t.Fatal(len(list), err)
	}
	return list
}

// findSecrets returns which of a list a store's files have.
func findSecrets(t *testing.T, dir string, list []string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, secret := range list {
			if bytes.Contains(b, []byte(secret)) {
				found = append(found, path+": "+secret)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestEncryptedFiles: neither bytes nor names are in the files of an encrypted store, while it is open, as a crash leaves it, and
// when it was closed, collected and compacted. The same search finds them in one that is not encrypted.
func TestEncryptedFiles(t *testing.T) {
	for _, key := range [][]byte{nil, testKey} {
		dir := t.TempDir()
		s, err := Open(dir, Options{Create: true, CommitEvery: time.Hour, Key: key})
		if err != nil {
			t.Fatal(err)
		}
		list := secrets(t, s)
		look := func(when string) {
			t.Helper()
			found := findSecrets(t, dir, list)
			if key == nil && len(found) < 8 {
				t.Errorf("%s: of a store that is not encrypted only %q are found", when, found)
			}
			if key != nil && len(found) > 0 {
				t.Errorf("%s: %q", when, found)
			}
		}
		look("open")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		look("closed")
		if s, err = Open(dir, Options{Key: key}); err != nil {
			t.Fatal(err)
		}
		checkStore(t, s)
		if err := errors.Join(s.RemoveWorkspace(bg, "secret-fork"), s.compactNow(bg)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.GC(bg); err != nil {
			t.Fatal(err)
		}
		if key != nil {
			look("collected") // in the other one it may be compressed now
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKeys: a wrong or missing key is told, whether the store was closed or a crash has left it, and changes nothing.
func TestKeys(t *testing.T) {
	other := bytes.Repeat([]byte{1}, KeyLen)
	closed, crashed, want := sampleStores(t, testKey)
	for _, dir := range []string{closed, crashed} {
		before := hashFiles(t, dir)
		for _, key := range [][]byte{nil, other, testKey[:31], append(bytes.Clone(testKey), 0)} {
			if s, err := Open(dir, Options{Key: key, Create: true}); !errors.Is(err, vfs.ErrKey) {
				t.Fatalf("open with a key of %d bytes: %v, %v", len(key), s, err)
			}
		}
		if after := hashFiles(t, dir); after != before {
			t.Error("opening with a wrong key has changed files")
		}
		if err := readAll(dir, testKey, want); err != nil {
			t.Error(err)
		}
	}
	plain := t.TempDir()
	s, err := Open(plain, Options{Create: true})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if s, err := Open(plain, Options{Key: testKey}); !errors.Is(err, vfs.ErrKey) {
		t.Errorf("a key for a store that is not encrypted: %v, %v", s, err)
	}
	if Encrypted(plain) || !Encrypted(closed) {
		t.Error("which store is encrypted cannot be told")
	}
}

// hashFiles is a sum of the files of a store, but for the lock, which is made by who looks.
func hashFiles(t *testing.T, dir string) [32]byte {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == lockFile {
			return err
		}
		b, err := os.ReadFile(path)
		h.Write([]byte(path))
		h.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return [32]byte(h.Sum(nil))
}

// A crash while a store is being made leaves a part of the file, or the file alone, and it can still be made, either way.
func TestEncryptionHalfMade(t *testing.T) {
	keys, err := deriveKeys(testKey)
	if err != nil {
		t.Fatal(err)
	}
	whole := encodeEncryption(keys.check)
	for n := 0; n <= len(whole); n += 9 {
		for _, key := range [][]byte{nil, testKey} {
			if n == len(whole) && key == nil {
				continue // it says what it is, and holds
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, encryptionFile), whole[:n], 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(dir, Options{Create: true, Key: key})
			if err == nil {
				err = s.Close()
			}
			if err != nil || Encrypted(dir) != (key != nil) {
				t.Errorf("%d bytes, key %v: %v", n, key != nil, err)
			}
		}
	}
	if _, err := decodeEncryption(whole); err != nil {
		t.Error(err)
	}
	for at := range whole {
		bad := bytes.Clone(whole)
		bad[at] ^= 1
		if _, err := decodeEncryption(bad); !errors.Is(err, vfs.ErrCorrupt) && !errors.Is(err, vfs.ErrNewerFormat) {
			t.Errorf("byte %d flipped: %v", at, err)
		}
	}
}
