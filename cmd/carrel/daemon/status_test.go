package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

func TestStatus(t *testing.T) {
	var pipe bytes.Buffer
	WriteStatus(&pipe, Status{Ready: true})
	long := strings.Repeat("\x01", 2*maxStatus)
	WriteStatus(&pipe, StatusOf(fmt.Errorf("open: %w", vfs.ErrInUse), long))
	WriteStatus(&pipe, StatusOf(fmt.Errorf("open: %w", vfs.ErrCorrupt), "bad\nvery"))
	var got []Status
	readStatuses(&pipe, func(s Status) { got = append(got, s) })
	if len(got) != 3 || !got[0].Ready || got[0].Err() != nil {
		t.Fatalf("statuses %+v", got)
	}
	if err := got[1].Err(); !errors.Is(err, vfs.ErrInUse) || got[1].Fatal {
		t.Errorf("the second is %v", err)
	}
	if err := got[2].Err(); errors.Is(err, vfs.ErrInUse) || !got[2].Fatal || err.Error() != "bad\nvery" {
		t.Errorf("the third is %v", err)
	}
	if _, ok := ReadStatus(strings.NewReader("")); ok {
		t.Error("a pipe that was closed gave a status")
	}
}

func TestRecord(t *testing.T) {
	store := t.TempDir()
	if list, err := readRecord(store); err != nil || len(list) != 0 {
		t.Errorf("without a record: %v, %v", list, err)
	}
	want := []recorded{
		{7, []byte("w\xff"), []byte("/mnt/\xfe"), true, false, true}, {8, []byte("x"), []byte("/y"), false, true, false},
	}
	if err := writeRecord(store, want); err != nil {
		t.Fatal(err)
	}
	got, err := readRecord(store)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("record %+v, %v, want %+v", got, err, want)
	}
	if m := got[0].mount(); m.Workspace != "w\xff" || m.Dir != "/mnt/\xfe" || !m.ReadOnly {
		t.Errorf("mount %+v", m)
	}
	if err := writeRecord(store, []recorded{}); err != nil {
		t.Error(err)
	}
	if got, err := readRecord(store); err != nil || got == nil || len(got) != 0 {
		t.Errorf("an empty record is read as %v, %v", got, err)
	}
	for range 2 {
		if err := writeRecord(store, nil); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(filepath.Join(store, recordName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readRecord(store); err == nil {
		t.Error("a broken record was read")
	}
}
