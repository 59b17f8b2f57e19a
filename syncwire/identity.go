package syncwire

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// alpn names the protocol in TLS handshakes.
const alpn = "carrel/1"

// Identity is what a server is known by, and a client where the server wants to know it: a key, and a certificate that says
// nothing but the key.
type Identity struct {
	certificate tls.Certificate
}

// NewIdentity makes an identity from an Ed25519 key.
func NewIdentity(key ed25519.PrivateKey) (Identity, error) {
	// Nobody looks at the names and dates: the key is pinned.
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return Identity{}, fmt.Errorf("make certificate: %w", err)
	}
	return Identity{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}, nil
}

// LoadIdentity reads the key in a file (PKCS #8, PEM), and makes one, which only its user can read, when there is no file.
func LoadIdentity(path string) (Identity, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if text, err = newKeyFile(path); err != nil {
			return Identity{}, err
		}
	}
	if err != nil {
		return Identity{}, fmt.Errorf("read server key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return Identity{}, fmt.Errorf("server key %s: no PEM: %w", path, vfs.ErrCorrupt)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return Identity{}, fmt.Errorf("server key %s: %w: %w", path, vfs.ErrCorrupt, err)
	}
	ed, ok := key.(ed25519.PrivateKey)
	if !ok {
		return Identity{}, fmt.Errorf("server key %s: a %T: %w", path, key, vfs.ErrNotSupported)
	}
	return NewIdentity(ed)
}

func newKeyFile(path string) ([]byte, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make server key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("make server key: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err := renameio.WriteFile(path, text, 0o600); err != nil {
		return nil, fmt.Errorf("write server key: %w", err)
	}
	return text, nil
}

// Fingerprint is the SHA-256 of a certificate's SubjectPublicKeyInfo.
type Fingerprint [sha256.Size]byte

// Fingerprint returns what clients pin.
func (i Identity) Fingerprint() Fingerprint {
	c, err := x509.ParseCertificate(i.certificate.Certificate[0])
	if err != nil {
		panic(err) // it was made here
	}
	return sha256.Sum256(c.RawSubjectPublicKeyInfo)
}

// String returns the fingerprint in base64url without padding.
func (f Fingerprint) String() string { return base64.RawURLEncoding.EncodeToString(f[:]) }

// ParseFingerprint is the inverse of String.
func ParseFingerprint(s string) (f Fingerprint, err error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	// The length of s, too: strict or not, the decoder passes over line ends.
	if err != nil || len(b) != len(f) || len(s) != base64.RawURLEncoding.EncodedLen(len(f)) {
		return f, fmt.Errorf("fingerprint %.64q: want 43 characters of base64url: %w", s, vfs.ErrInvalid)
	}
	return Fingerprint(b), nil
}

// serverTLS is how a server shakes hands. It asks for the client's key, and takes who has none: whether one is wanted, and
// which, the server looks at before it reads anything (ServerConfig.ClientKeys), because in TLS 1.3 a client that is refused
// in the handshake learns of it as an alert in place of its first answer, which means one thing or another.
func (i Identity) serverTLS() *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{i.certificate}, MinVersion: tls.VersionTLS13, NextProtos: []string{alpn},
		ClientAuth: tls.RequestClientCert,
	}
}

// TLS is how a server of another protocol on the same machine shakes hands with the same key.
func (i Identity) TLS(protocols ...string) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{i.certificate}, MinVersion: tls.VersionTLS13, NextProtos: protocols}
}

// shownKey returns the fingerprint of the key that the other side of a handshake has proved to have, zero for none.
func shownKey(state tls.ConnectionState) Fingerprint {
	if len(state.PeerCertificates) == 0 {
		return Fingerprint{}
	}
	return sha256.Sum256(state.PeerCertificates[0].RawSubjectPublicKeyInfo)
}

// ticket keeps the newest session of one server to resume, for one connection: RFC 8446 (C.4) wants tickets to be used
// once, and crypto/tls and quic-go write to what the cache has given them.
type ticket struct {
	mu    sync.Mutex
	state *tls.ClientSessionState
}

func (t *ticket) Get(string) (*tls.ClientSessionState, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	state := t.state
	t.state = nil
	return state, state != nil
}

func (t *ticket) Put(_ string, state *tls.ClientSessionState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state = state
}

// DialOption says more of how a dialer shakes hands.
type DialOption func(*tls.Config)

// As has a client show a key of its own to the server: some let in only those whose keys they know.
func As(id Identity) DialOption {
	return func(c *tls.Config) { c.Certificates = []tls.Certificate{id.certificate} }
}

// clientTLS is how a client shakes hands with the one server that has the pinned key. Sessions are resumed, so that
// the server need not sign again; the key is looked at then, too.
func clientTLS(pin Fingerprint, options ...DialOption) *tls.Config {
	config := &tls.Config{
		InsecureSkipVerify: true, // the pin is more than a name in a certificate
		MinVersion:         tls.VersionTLS13, NextProtos: []string{alpn}, ServerName: "carrel",
		ClientSessionCache: new(ticket),
		VerifyConnection: func(state tls.ConnectionState) error {
			got := shownKey(state)
			if len(state.PeerCertificates) == 0 || got != pin {
				return fmt.Errorf("server has %v, pinned is %v: %w", got, pin, ErrFingerprint)
			}
			return nil
		},
	}
	for _, o := range options {
		o(config)
	}
	return config
}
