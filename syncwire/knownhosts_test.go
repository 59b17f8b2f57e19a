package syncwire

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

func TestKnownHosts(t *testing.T) {
	k := KnownHosts(filepath.Join(t.TempDir(), "config", "known_hosts"))
	if _, err := k.Find("a:1"); !errors.Is(err, vfs.ErrNotExist) {
		t.Error(err)
	}
	a, b := Fingerprint{1}, Fingerprint{2}
	for _, err := range []error{k.Add("a:1", a), k.Add("b:1", b), k.Add("a:1", a)} {
		if err != nil {
			t.Error(err)
		}
	}
	if err := k.Add("A:1", b); !errors.Is(err, ErrFingerprint) {
		t.Errorf("another key: %v", err)
	}
	for addr, want := range map[string]KnownHost{"a:1": {"a:1", a, 1}, "A:1": {"a:1", a, 1}, "b:1": {"b:1", b, 2}} {
		if got, err := k.Find(addr); err != nil || got != want {
			t.Errorf("%s: %v, %v", addr, got, err)
		}
	}
	for _, addr := range []string{"", " a:1", "a 1", "a:1\n", "#a:1"} {
		if err := k.Add(addr, a); !errors.Is(err, vfs.ErrInvalid) {
			t.Errorf("address %q: %v", addr, err)
		}
	}
}

// A file that somebody has edited, and left without its last line end, can be added to.
func TestKnownHostsAddsALine(t *testing.T) {
	k := KnownHosts(filepath.Join(t.TempDir(), "known"))
	a := KnownHost{"a:1", Fingerprint{1}, 2}
	if err := os.WriteFile(string(k), []byte("# mine\n"+a.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := k.Add("b:1", Fingerprint{2}); err != nil {
		t.Error(err)
	}
	for _, want := range []KnownHost{a, {"b:1", Fingerprint{2}, 3}} {
		if got, err := k.Find(want.Addr); err != nil || got != want {
			t.Errorf("%v, %v", got, err)
		}
	}
}

func TestParseClientKeys(t *testing.T) {
	a, b := Fingerprint{1}, Fingerprint{2}
	text := "# ours\n\n" + a.String() + "\tthe  laptop \r\n  " + b.String()
	got, err := ParseClientKeys(strings.NewReader(text))
	if want := map[Fingerprint]string{a: "the laptop", b: ""}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"the laptop", "the laptop " + a.String(), a.String() + "A"} {
		if _, err := ParseClientKeys(strings.NewReader(text)); !errors.Is(err, vfs.ErrCorrupt) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestParseKnownHosts(t *testing.T) {
	pin := Fingerprint{7}
	for text, want := range map[string][]KnownHost{
		"":                                     nil,
		"# nothing\n\n  \n":                    nil,
		"a:1 " + pin.String():                  {{"a:1", pin, 1}},
		"#\r\n a:1\t" + pin.String() + " \r\n": {{"a:1", pin, 2}},
	} {
		if got, err := ParseKnownHosts(strings.NewReader(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]error{
		"nothing":                           vfs.ErrCorrupt,
		"a:1 short":                         vfs.ErrCorrupt,
		"a:1 " + pin.String() + " more":     vfs.ErrCorrupt,
		strings.Repeat("x", 70_000):         vfs.ErrCorrupt,
		strings.Repeat("# x\n", maxKeyFile): vfs.ErrTooBig,
	} {
		if _, err := ParseKnownHosts(strings.NewReader(text)); !errors.Is(err, want) {
			t.Errorf("%.80q: %v, want %v", text, err, want)
		}
	}
}
