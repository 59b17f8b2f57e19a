package mirror

import (
	"encoding/json"
	"fmt"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Names of notes in the mirror's store.
const (
	noteState  = "state"   // state
	noteLoaded = "loaded/" // + inode number: the revision at which it was fetched by itself
	noteBare   = "bare/"   // the same, of its record alone
	notePush   = "push/"   // + number: pieces of the push that is under way
	noteLease  = "lease/"  // + first number: a range that was leased
)

// state is what a mirror has to know of its authority, in JSON: it is small and for people too.
type state struct {
	Epoch  vfs.Epoch  `json:"epoch"`
	Rev    vfs.Rev    `json:"rev"`
	Digest vfs.Digest `json:"digest"`
	// From is the inode number from which on the snapshot is still to come; Whole, that all has. Void says that the snapshot
	// cannot be gone on with, and that what has come of it is to be compared with another.
	From  vfs.Ino `json:"from,omitempty"`
	Whole bool    `json:"whole"`
	Void  bool    `json:"void,omitempty"`
}

func (s state) note() casstore.Note {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // of numbers only
	}
	return casstore.Note{Name: noteState, Value: b}
}

// stateAt is the state when the mirror has got to a position.
func stateAt(p vfs.Position) state {
	return state{Epoch: p.Epoch, Rev: p.Rev, Digest: p.Digest, Whole: true}
}

// recall finds what the process before has noted.
func (m *Mirror) recall() error {
	notes, err := m.replica.Notes("")
	if err != nil {
		return err
	}
	var s state
	var pieces []casstore.Note
	for _, n := range notes {
		switch {
		case n.Name == noteState:
			if err := json.Unmarshal(n.Value, &s); err != nil {
				return fmt.Errorf("note %s: %w: %w", n.Name, vfs.ErrCorrupt, err)
			}
		case hasPrefix(n.Name, noteLoaded), hasPrefix(n.Name, noteBare), hasPrefix(n.Name, noteLease):
			if err := m.loader.recall(n); err != nil {
				return err
			}
		case hasPrefix(n.Name, notePush):
			pieces = append(pieces, n)
		}
	}
	m.pos = vfs.Position{Cursor: vfs.Cursor{Epoch: s.Epoch, Rev: s.Rev}, Digest: s.Digest}
	m.loader.resume(s)
	m.flying, err = flightOf(pieces)
	return err
}

func hasPrefix(s, prefix string) bool { return len(s) > len(prefix) && s[:len(prefix)] == prefix }
