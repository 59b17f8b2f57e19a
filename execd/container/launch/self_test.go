package launch

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// The copy of a program that has been replaced meanwhile is the program, runs, and cannot be written.
func TestOwnCopy(t *testing.T) {
	fd, err := ownCopy()
	if err != nil {
		t.Fatal(err)
	}
	path := "/proc/self/fd/" + strconv.Itoa(fd)
	want, err := os.ReadFile(running)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
	if out, err := exec.Command(path, "-test.run=^$").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte{0}); !errors.Is(err, unix.EPERM) {
		t.Errorf("write: %v", err)
	}
	if err := errors.Join(f.Close(), unix.Close(fd)); err != nil {
		t.Error(err)
	}
}
