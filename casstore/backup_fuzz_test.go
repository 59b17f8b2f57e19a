package casstore

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// FuzzLoad loads what is put between the beginning of a backup and its last frame, which fits: either it is refused as damaged
// and nothing of it is left, or the store is sound with it.
func FuzzLoad(f *testing.F) {
	whole, ends := smallStream(f)
	body := whole[len(backupMagic)+1 : len(whole)-34]
	f.Add(byte(secondBackup), body)
	f.Add(byte(firstBackup), body)
	for i := 1; i < len(ends)-1; i++ { // a frame less, and a frame twice
		a, b := ends[i-1]-len(backupMagic)-1, ends[i]-len(backupMagic)-1
		f.Add(byte(secondBackup), append(bytes.Clone(body[:a]), body[b:]...))
		f.Add(byte(secondBackup), append(bytes.Clone(body[:b]), body[a:]...))
	}
	s, err := Open(f.TempDir(), Options{Create: true, CommitEvery: time.Hour})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := s.Close(); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, version byte, body []byte) {
		stream := append(append([]byte(backupMagic), version), body...)
		sum := sha256.Sum256(stream)
		stream = append(append(stream, frameEnd, byte(len(sum))), sum[:]...)
		_, err := s.Load(bg, LoadOptions{}, bytes.NewReader(stream))
		if err != nil && !errors.Is(err, vfs.ErrCorrupt) && !errors.Is(err, vfs.ErrNewerFormat) && !errors.Is(err, vfs.ErrNoWorkspace) {
			t.Fatalf("load: %v", err)
		}
		list, listErr := s.Workspaces(bg)
		if listErr != nil || err != nil && len(list) > 0 {
			t.Fatalf("workspaces %+v, %v, after %v", list, listErr, err)
		}
		if err == nil {
			checkStore(t, s)
		}
		for _, in := range list {
			if err := s.RemoveWorkspace(bg, in.Name); err != nil {
				t.Fatal(err)
			}
		}
		if loads, err := s.loads(); err != nil || len(loads) > 0 || len(s.reading.pins) > 0 {
			t.Fatalf("left behind: %v, %v, pinned %v", loads, err, s.reading.pins)
		}
	})
}
