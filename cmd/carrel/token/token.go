package token

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
)

const (
	prefix      = "carrel_"
	idBytes     = 8
	secretBytes = 32
	// maxSubject is the longest subject, in bytes. It is a label of metrics and a column of tables.
	maxSubject = 128
	// maxFile is the longest file of a token, in bytes: more than a server takes.
	maxFile = 8 << 10
)

var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Token is what is known of a token. It does not hold its secret.
type Token struct {
	ID      string
	Subject string // for whom it was made; all tokens of a subject are the same peer's
	Rights  syncwire.Rights
	// Workspaces are the names it is good for; All says that it is good for every one, and then there are none.
	Workspaces []string
	All        bool
	Created    time.Time
	Expires    time.Time // zero for never
}

// Expired reports whether the token is no longer good at a time.
func (t *Token) Expired(at time.Time) bool { return !t.Expires.IsZero() && !at.Before(t.Expires) }

// covers reports whether the token is good for a workspace.
func (t *Token) covers(workspace string) bool {
	return t.All || slices.Contains(t.Workspaces, workspace)
}

// check returns ErrInvalid for a token that cannot be meant.
func (t *Token) check() error {
	bad := func(text string) error { return fmt.Errorf("%s: %w", text, vfs.ErrInvalid) }
	switch {
	case t.Rights == 0:
		return bad("a token without rights")
	case !t.Rights.Has(syncwire.RightRead):
		return bad("a token without the right to read, which every session needs")
	case t.All == (len(t.Workspaces) > 0):
		return bad("a token for no workspace, or for some and for all")
	case len(t.Subject) > maxSubject || !utf8.ValidString(t.Subject) ||
		strings.ContainsFunc(t.Subject, func(r rune) bool { return !unicode.IsPrint(r) }):
		return bad(fmt.Sprintf("subject %.40q is not up to %d printable bytes", t.Subject, maxSubject))
	}
	return nil
}

// secretHash is what is kept of a secret.
type secretHash [sha256.Size]byte

func hashOf(secret string) secretHash { return sha256.Sum256([]byte(secret)) }

// newText makes an id and a secret, and the text that a holder shows.
func newText() (id, secret, text string) {
	var b [idBytes + secretBytes]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	id = idEncoding.EncodeToString(b[:idBytes])
	secret = base64.RawURLEncoding.EncodeToString(b[idBytes:])
	return id, secret, prefix + id + "_" + secret
}

// splitText returns the parts of a token's text. Of a text that is none, they are those of no token.
func splitText(text string) (id, secret string) {
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return "", text
	}
	id, secret, _ = strings.Cut(rest, "_")
	return id, secret
}

// ReadFile reads the text of a token from a file that holds nothing else but white space around it.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	defer f.Close() // only read
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	text, ok := trimText(b)
	if !ok {
		return nil, fmt.Errorf("token: %s holds something else: %w", path, vfs.ErrInvalid)
	}
	return text, nil
}

// trimText takes the white space off a token's text. It is not ok when something else is left than one word.
func trimText(b []byte) (text []byte, ok bool) {
	text = bytes.TrimSpace(b)
	return text, len(text) > 0 && len(b) <= maxFile && len(bytes.Fields(text)) == 1
}
