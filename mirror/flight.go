package mirror

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// flight is a push that has been noted, so that it can be made again as it was after a crash.
type flight struct {
	push  vfs.Push
	notes []string // under which it is noted
	rest  bool     // it is a part of what there was to push
	rev   vfs.Rev  // the local revision that it brings the authority up to; zero after a restart
	at    vfs.Rev  // the authority's revision that the mirror knew when it was made
	bytes int64    // of Mirror.written that it covers

	void   bool          // it was made for another life of the authority's store, and is not made again
	unsure bool          // it may have been sent in a session that has ended, and the next feed does not say whether it was applied
	done   chan struct{} // closed when it is known what has become of it
}

// newFlight returns a flight without records.
func newFlight() *flight { return &flight{done: make(chan struct{})} }

// echoedIn reports whether changes show that the push was applied, in a session whose answer was lost: each of its records
// has changed, and some inode is as it has made it. Times in nanoseconds tell that from anybody else's doing; a name has
// none, and two mirrors may well give one file the same.
func (f *flight) echoedIn(changes []vfs.Record) bool {
	now := make(map[vfs.Key][]byte, len(changes))
	for _, r := range changes {
		now[r.Key] = r.Value
	}
	same := false
	for i := range f.push.Records {
		r := &f.push.Records[i]
		value, changed := now[r.Key]
		if !changed {
			return false
		}
		same = same || r.Kind == vfs.KeyInode && r.Value != nil && reconcile.Equal(value, r.Value)
	}
	return same
}

// mayBeIn reports whether changes may hold what the push has done. If it was applied, each of its records has changed since;
// of these a comparison finds the ones that are not as the mirror thought.
func (f *flight) mayBeIn(changes []vfs.Record, comparison bool) bool {
	changed := make(map[vfs.Key]bool, len(changes))
	for i := range changes {
		changed[changes[i].Key] = true
	}
	found := 0
	for i := range f.push.Records {
		if changed[f.push.Records[i].Key] {
			found++
		}
	}
	return found == len(f.push.Records) || comparison && found > 0
}

// encodePush: id | for each record: kind, ino, name, base, value as in PROTOCOL.md.
func encodePush(p *vfs.Push) []byte {
	b := slices.Clone(p.ID[:])
	for i := range p.Records {
		r := &p.Records[i]
		b = append(b, byte(r.Kind))
		b = binary.AppendUvarint(b, uint64(r.Ino))
		b = append(append(b, byte(len(r.Name))), r.Name...)
		b = append(b, r.Base[:]...)
		if r.Value == nil {
			b = append(b, 0)
			continue
		}
		b = binary.AppendUvarint(b, uint64(len(r.Value))+1)
		b = append(b, r.Value...)
	}
	return b
}

// decodePush is the inverse of encodePush. Values alias b.
func decodePush(b []byte) (p vfs.Push, err error) {
	d := decoder{b: b}
	copy(p.ID[:], d.take(len(p.ID)))
	for len(d.b) > 0 && !d.failed {
		var r vfs.PushRecord
		r.Kind = vfs.KeyKind(d.byte())
		r.Ino = vfs.Ino(d.uvarint())
		r.Name = string(d.take(int(d.byte())))
		copy(r.Base[:], d.take(len(r.Base)))
		if n := d.uvarint(); n > vfs.MaxRecord+1 {
			d.failed = true
		} else if n > 0 {
			r.Value = d.take(int(n - 1))
		}
		p.Records = append(p.Records, r)
	}
	if d.failed {
		return p, fmt.Errorf("noted push of %d bytes: %w", len(b), vfs.ErrCorrupt)
	}
	return p, nil
}

// decoder reads fields off the front of b. Once one does not fit, failed stays set.
type decoder struct {
	b      []byte
	failed bool
}

func (d *decoder) take(n int) []byte {
	if d.failed || n > len(d.b) {
		d.failed = true
		return nil
	}
	out := d.b[:n:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if d.failed || n <= 0 {
		d.failed = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

// note returns the notes of a flight.
func (f *flight) note() (notes []casstore.Note) {
	n := 0
	for piece := range slices.Chunk(encodePush(&f.push), noteSize) {
		name := fmt.Sprintf("%s%06d", notePush, n)
		n++
		notes = append(notes, casstore.Note{Name: name, Value: piece})
		f.notes = append(f.notes, name)
	}
	return notes
}

// forget returns what removes the notes.
func (f *flight) forget() (notes []casstore.Note) {
	for _, name := range f.notes {
		notes = append(notes, casstore.Note{Name: name})
	}
	return notes
}

// flightOf returns the flight that was noted, or nil.
func flightOf(pieces []casstore.Note) (*flight, error) {
	if len(pieces) == 0 {
		return nil, nil
	}
	slices.SortFunc(pieces, func(a, b casstore.Note) int { return strings.Compare(a.Name, b.Name) })
	f := newFlight()
	f.rest = true
	var b []byte
	for _, n := range pieces {
		f.notes = append(f.notes, n.Name)
		b = append(b, n.Value...)
	}
	var err error
	f.push, err = decodePush(b)
	return f, err
}
