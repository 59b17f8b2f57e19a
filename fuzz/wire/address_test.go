package wire

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/syncwire"
)

// What people hand on, by the first byte of the input.
const (
	urlText = iota
	fingerprintText
	rightsText
	knownHostsText
	clientKeysText
	texts
)

// Memory for a text of n bytes: a scanner's buffer, which grows to 64 KiB with a long line, and lines of a byte in the
// worst case. An error says what is wrong, and says it in quotes.
const (
	textRoom = 160 << 10
	textPer  = 64
)

// FuzzAddress: what is read is written as what reads the same, and no two fingerprints are one.
func FuzzAddress(f *testing.F) {
	pin := syncwire.Fingerprint{1, 2, 3}.String()
	for _, s := range []string{
		"carrel://" + pin + "@host:4477/demo", "carrel://host/demo", "carrel://[::1]:1/caf%e9", "carrel://[fe80::1%25eth0]/a",
		"carrel://host:/w", "carrel://a b/w", "carrel://u:p@host/w", "http://host/w", "carrel://host/a/b", "carrel:///w",
	} {
		f.Add(append([]byte{urlText}, s...))
	}
	f.Add(append([]byte{fingerprintText}, pin...))
	f.Add(append([]byte{fingerprintText}, pin[:42]+"B"...))
	for _, s := range []string{"read", "read,write,exec,admin", "write,read", "read,", ""} {
		f.Add(append([]byte{rightsText}, s...))
	}
	for _, s := range []string{"host:1 " + pin + "\n", "# mine\n\n[::1]:1\t" + pin, "host:1 x", "host:1\n" + pin} {
		f.Add(append([]byte{knownHostsText}, s...))
	}
	for _, s := range []string{pin + " the laptop\n", "# ours\n\n" + pin, pin + "\nx"} {
		f.Add(append([]byte{clientKeysText}, s...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		kind, s := b[0]%texts, string(b[1:])
		var err error
		bounded(t, textRoom+textPer*uint64(len(b)), func() { err = reread(t, kind, s) })
		if err != nil && !isCoded(err) {
			t.Fatalf("%q: an error without a number: %v", s, err)
		}
	})
}

// reread reads a text, and what it is written as.
func reread(t *testing.T, kind byte, s string) error {
	switch kind {
	case urlText:
		return rereadAs(t, s, syncwire.ParseTarget)
	case fingerprintText:
		p, err := syncwire.ParseFingerprint(s)
		if err == nil && p.String() != s {
			t.Fatalf("%q and %v are one fingerprint", s, p)
		}
		return err
	case rightsText:
		r, ok := syncwire.ParseRights(s)
		if again, too := syncwire.ParseRights(r.String()); ok && (again != r || !too) {
			t.Fatalf("%q is %v, which is %v", s, r, again)
		}
		return nil
	case knownHostsText:
		return rereadHosts(t, s)
	default:
		return rereadKeys(t, s)
	}
}

// rereadAs reads what a value is written as.
func rereadAs[T interface {
	comparable
	String() string
}](t *testing.T, s string, parse func(string) (T, error)) error {
	v, err := parse(s)
	if err != nil {
		return err
	}
	if again, err := parse(v.String()); err != nil || again != v {
		t.Fatalf("%q is %+v, which is written as %q, which is %+v, %v", s, v, v, again, err)
	}
	return nil
}

func rereadHosts(t *testing.T, s string) error {
	hosts, err := syncwire.ParseKnownHosts(strings.NewReader(s))
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for i, h := range hosts {
		text.WriteString(h.String() + "\n")
		hosts[i].Line = i + 1
	}
	if again, err := syncwire.ParseKnownHosts(&text); err != nil || !reflect.DeepEqual(again, hosts) {
		t.Fatalf("%q is %v, which is %v, %v", s, hosts, again, err)
	}
	return nil
}

func rereadKeys(t *testing.T, s string) error {
	keys, err := syncwire.ParseClientKeys(strings.NewReader(s))
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for key, whose := range keys {
		text.WriteString(key.String() + " " + whose + "\n")
	}
	if again, err := syncwire.ParseClientKeys(&text); err != nil || !reflect.DeepEqual(again, keys) {
		t.Fatalf("%q is %v, which is %v, %v", s, keys, again, err)
	}
	return nil
}
