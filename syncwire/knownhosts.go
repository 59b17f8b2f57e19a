package syncwire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/quic-go/quic-go"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// KnownHosts is a file of the keys that servers have: in each line an address (host:port), white space and a fingerprint.
// Empty lines and lines that begin with # say nothing. Of several lines for one address the first counts.
type KnownHosts string

// KnownHost is a line of such a file.
type KnownHost struct {
	Addr string
	Pin  Fingerprint
	Line int // its number, from 1
}

// String returns the line.
func (h KnownHost) String() string { return h.Addr + " " + h.Pin.String() }

// ParseKnownHosts reads what is in such a file: ErrCorrupt, with the number of the line, for a line that says something
// else, and ErrTooBig for more than a megabyte.
func ParseKnownHosts(r io.Reader) (hosts []KnownHost, err error) {
	err = scanKeys(r, func(words []string, n int) bool {
		if len(words) != 2 {
			return false
		}
		pin, err := ParseFingerprint(words[1])
		hosts = append(hosts, KnownHost{Addr: words[0], Pin: pin, Line: n})
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	return hosts, nil
}

// Find returns what the file says of a server, vfs.ErrNotExist when it does not know it.
func (k KnownHosts) Find(addr string) (KnownHost, error) {
	f, err := os.Open(string(k))
	if errors.Is(err, fs.ErrNotExist) {
		return KnownHost{}, fmt.Errorf("known hosts: %s: %w", addr, vfs.ErrNotExist)
	}
	if err != nil {
		return KnownHost{}, fmt.Errorf("known hosts: %w", err)
	}
	defer f.Close() // only read
	hosts, err := ParseKnownHosts(f)
	if err != nil {
		return KnownHost{}, fmt.Errorf("known hosts: %s: %w", string(k), err)
	}
	for _, h := range hosts {
		if strings.EqualFold(h.Addr, addr) { // names of hosts have no case
			return h, nil
		}
	}
	return KnownHost{}, fmt.Errorf("known hosts: %s: %w", addr, vfs.ErrNotExist)
}

// Add notes the fingerprint of a server that is not known yet; ErrFingerprint when it is known by another. It makes the
// file, and the folder in which it is.
func (k KnownHosts) Add(addr string, pin Fingerprint) error {
	if fields := strings.Fields(addr); len(fields) != 1 || fields[0] != addr || addr[0] == '#' {
		return fmt.Errorf("known hosts: address %q: %w", addr, vfs.ErrInvalid)
	}
	switch known, err := k.Find(addr); {
	case err == nil && known.Pin == pin:
		return nil
	case err == nil:
		return fmt.Errorf("known hosts: %s is known as %v: %w", addr, known.Pin, ErrFingerprint)
	case !errors.Is(err, vfs.ErrNotExist):
		return err
	}
	if err := k.append(KnownHost{Addr: addr, Pin: pin}); err != nil {
		return fmt.Errorf("known hosts: %w", err)
	}
	return nil
}

// append adds a line in one write, so that what two processes add at a time does not mix.
func (k KnownHosts) append(h KnownHost) (err error) {
	if err := os.MkdirAll(filepath.Dir(string(k)), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(string(k), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	line := h.String() + "\n"
	if size, err := f.Seek(0, io.SeekEnd); err != nil {
		return err
	} else if size > 0 {
		var last [1]byte
		if _, err := f.ReadAt(last[:], size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = "\n" + line
		}
	}
	_, err = f.WriteString(line)
	return err
}

// AskFingerprint asks the server at an address for its key, so that a person can compare it with what the server's owner
// says. Nothing is sent to a server that is only asked. It tries QUIC, then TCP.
func AskFingerprint(ctx context.Context, addr string) (Fingerprint, error) {
	var seen Fingerprint
	config := clientTLS(Fingerprint{})
	config.VerifyConnection = func(state tls.ConnectionState) error {
		seen = shownKey(state)
		return errAsked
	}
	quicCtx, cancel := context.WithTimeout(ctx, quicPatience)
	defer cancel()
	_, err := quic.DialAddr(quicCtx, addr, config, quicConfig())
	if !errors.Is(err, errAsked) {
		d := tls.Dialer{Config: config}
		_, err = d.DialContext(ctx, "tcp", addr)
	}
	if !errors.Is(err, errAsked) {
		return Fingerprint{}, fmt.Errorf("ask %s for its key: %w", addr, err)
	}
	return seen, nil
}

// errAsked ends a handshake that was only made to see the key.
var errAsked = errors.New("the key has been seen")
