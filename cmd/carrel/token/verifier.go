package token

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"syscall"
	"time"

	"github.com/carrelfs/carrel/syncwire"
)

// Verifier decides on the tokens of a store. It implements syncwire.Verifier and is safe for concurrent use.
type Verifier struct {
	dir string
	now func() time.Time
	log *slog.Logger

	mu     sync.Mutex // also held while the file is read: who comes meanwhile waits for what it says
	seen   fileState
	tokens map[string]*verified // by id
}

var _ syncwire.Verifier = (*Verifier)(nil)

// verified is a token as the file has it.
type verified struct {
	entry   entry
	token   Token
	hash    secretHash
	revoked chan struct{}
}

// fileState tells one file from the one that replaces it: each is made anew.
type fileState struct {
	there bool
	ino   uint64
	mtime syscall.Timespec
	size  int64
}

// NewVerifier returns a verifier of the tokens of the store in dir. It fails when their file cannot be read. What the
// answer to a client does not say, why a token was not accepted, it says to log.
func NewVerifier(dir string, log *slog.Logger) (*Verifier, error) {
	v := &Verifier{dir: dir, now: time.Now, log: log, tokens: map[string]*verified{}}
	return v, v.Reload()
}

// Verify implements syncwire.Verifier.
func (v *Verifier) Verify(_ context.Context, text []byte, workspace string) (syncwire.Grant, error) {
	id, secret := splitText(string(text))
	hash := hashOf(secret)
	v.mu.Lock()
	err := v.refreshLocked()
	known := v.tokens[id]
	v.mu.Unlock()
	if err != nil {
		v.log.Error("tokens cannot be read: nobody is let in", "err", err)
		return syncwire.Grant{}, fmt.Errorf("tokens cannot be read: %w", syncwire.ErrOverloaded)
	}
	// An unknown token is compared too, with a hash that no secret is likely to have.
	want := &verified{}
	if known != nil {
		want = known
	}
	same := subtle.ConstantTimeCompare(hash[:], want.hash[:]) == 1
	why := ""
	switch {
	case known == nil || !same:
		why = "unknown"
	case known.token.Expired(v.now()):
		why = "expired"
	case !known.token.covers(workspace):
		why = "not for the workspace"
	default:
		return known.grant(), nil
	}
	v.log.Warn("token not accepted", "because", why, "id", idForLog(known), "workspace", workspace)
	return syncwire.Grant{}, syncwire.ErrToken
}

// idForLog is the id of a token that is known. What a stranger made up has no place in the log.
func idForLog(known *verified) string {
	if known == nil {
		return ""
	}
	return known.token.ID
}

func (k *verified) grant() syncwire.Grant {
	return syncwire.Grant{Subject: k.token.Subject, Rights: k.token.Rights, Expires: k.token.Expires, Revoked: k.revoked}
}

// Reload reads the file, and ends the sessions of tokens that are not in it any more, or not as they were.
func (v *Verifier) Reload() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.reloadLocked()
}

// refreshLocked is Reload when the file was replaced since.
func (v *Verifier) refreshLocked() error {
	now, err := v.stat()
	if err != nil || now == v.seen {
		return err
	}
	return v.reloadLocked()
}

func (v *Verifier) reloadLocked() error {
	state, err := v.stat() // before it is read: a file that comes between is read again next time
	if err != nil {
		return err
	}
	f, err := read(v.dir)
	if err != nil {
		return err
	}
	tokens := make(map[string]*verified, len(f.Tokens))
	for _, e := range f.Tokens {
		k := &verified{entry: e, revoked: make(chan struct{})}
		if k.token, k.hash, err = e.token(); err != nil {
			return err
		}
		if old := v.tokens[e.ID]; old != nil && reflect.DeepEqual(old.entry, e) {
			k = old
		}
		tokens[e.ID] = k
	}
	for id, old := range v.tokens {
		if tokens[id] != old {
			close(old.revoked)
		}
	}
	v.seen, v.tokens = state, tokens
	return nil
}

func (v *Verifier) stat() (fileState, error) {
	info, err := os.Stat(filepath.Join(v.dir, fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return fileState{}, nil
	}
	if err != nil {
		return fileState{}, err
	}
	st := info.Sys().(*syscall.Stat_t)
	return fileState{there: true, ino: st.Ino, mtime: st.Mtim, size: st.Size}, nil
}
