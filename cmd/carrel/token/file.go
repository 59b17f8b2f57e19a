package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
)

// fileName is the file of tokens in a store's directory, and fileVersion its format.
const (
	fileName    = "tokens.json"
	fileVersion = 1
)

// file is the file's content.
type file struct {
	Version int     `json:"version"`
	Tokens  []entry `json:"tokens"`
}

// entry is a token in the file. Names of workspaces are bytes, which JSON has only in base64.
type entry struct {
	ID         string    `json:"id"`
	SHA256     []byte    `json:"sha256"` // of the secret
	Subject    string    `json:"subject"`
	Rights     string    `json:"rights"`
	Workspaces [][]byte  `json:"workspaces,omitempty"`
	All        bool      `json:"all,omitempty"`
	Created    time.Time `json:"created"`
	Expires    time.Time `json:"expires,omitzero"`
}

func entryOf(t Token, hash secretHash) entry {
	e := entry{
		ID: t.ID, SHA256: hash[:], Subject: t.Subject, Rights: t.Rights.String(), All: t.All, Created: t.Created,
		Expires: t.Expires,
	}
	for _, w := range t.Workspaces {
		e.Workspaces = append(e.Workspaces, []byte(w))
	}
	return e
}

// token is the inverse, with ErrCorrupt for what entryOf cannot have made.
func (e *entry) token() (t Token, hash secretHash, err error) {
	rights, ok := syncwire.ParseRights(e.Rights)
	t = Token{ID: e.ID, Subject: e.Subject, Rights: rights, All: e.All, Created: e.Created, Expires: e.Expires}
	for _, w := range e.Workspaces {
		t.Workspaces = append(t.Workspaces, string(w))
	}
	if !ok || e.ID == "" || len(e.SHA256) != len(hash) || t.check() != nil {
		return t, hash, fmt.Errorf("%s: token %q: %w", fileName, e.ID, vfs.ErrCorrupt)
	}
	return t, secretHash(e.SHA256), nil
}

// Create makes a token as t says, but for its ID, Created, and a Subject that is empty, which it sets, and returns it with
// its text. That is kept nowhere. ErrInvalid for a token that cannot be meant.
func Create(dir string, t Token, now time.Time) (made Token, text string, err error) {
	id, secret, text := newText()
	t.ID, t.Created = id, now.UTC().Truncate(time.Second)
	if t.Subject == "" {
		t.Subject = id
	}
	err = t.check()
	if err == nil {
		err = edit(dir, func(f *file) error {
			f.Tokens = append(f.Tokens, entryOf(t, hashOf(secret)))
			return nil
		})
	}
	if err != nil {
		return Token{}, "", fmt.Errorf("create token: %w", err)
	}
	return t, text, nil
}

// List returns the tokens of the store in dir, the oldest first. ErrCorrupt when the file cannot be understood.
func List(dir string) ([]Token, error) {
	f, err := read(dir)
	if err != nil {
		return nil, err
	}
	list := make([]Token, len(f.Tokens))
	for i := range f.Tokens {
		if list[i], _, err = f.Tokens[i].token(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Remove takes a token away: ErrNotExist when there is none of that id.
func Remove(dir, id string) error {
	err := edit(dir, func(f *file) error {
		n := len(f.Tokens)
		f.Tokens = slices.DeleteFunc(f.Tokens, func(e entry) bool { return e.ID == id })
		if len(f.Tokens) == n {
			return vfs.ErrNotExist
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove token %q: %w", id, err)
	}
	return nil
}

// read returns an empty file when there is none.
func read(dir string) (file, error) {
	b, err := os.ReadFile(filepath.Join(dir, fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return file{Version: fileVersion}, nil
	}
	if err != nil {
		return file{}, err
	}
	return parseFile(b)
}

func parseFile(b []byte) (file, error) {
	var f file
	if err := json.Unmarshal(b, &f); err != nil {
		return file{}, fmt.Errorf("%s: %w: %w", fileName, vfs.ErrCorrupt, err)
	}
	if f.Version != fileVersion {
		return file{}, fmt.Errorf("%s: version %d: %w", fileName, f.Version, vfs.ErrNewerFormat)
	}
	return f, nil
}

// edit changes the file. What was changed survives a crash when edit has returned.
func edit(dir string, change func(*file) error) error {
	lock, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer lock.Close() // and with it the lock
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	f, err := read(dir)
	if err == nil {
		err = change(&f)
	}
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, fileName)
	if err := renameio.WriteFile(path, append(b, '\n'), 0o600, renameio.WithTempDir(dir)); err != nil {
		return err
	}
	return lock.Sync() // of the directory: a removal that a power cut takes back would let somebody in again
}
