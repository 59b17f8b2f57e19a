package vfs

import (
	"encoding/binary"
	"encoding/hex"
)

// Digest is the sum of the hashes of all records of a workspace, or of a part of it: equal digests, equal trees. The
// zero Digest is that of nothing.
//
// The sum is taken lane by lane over four big-endian 64-bit words, each modulo 2^64. So a digest is kept up to date by
// adding and subtracting what changes, in any order, and the digests of parts add up to that of the whole. Lanes need no
// carry between them, which makes them four instructions where a sum modulo 2^256 takes a loop in every language that
// has no wide integers, and against accidents they are as good: two different trees agree with a chance of 2^-256.
// (XOR would be as cheap, but a record that is counted twice by mistake would vanish.) Against an adversary who can
// choose records neither is good, nor need it be: who may write to a workspace need not forge its digest.
type Digest [4]uint64

// Add counts r in; a tombstone changes nothing.
func (d *Digest) Add(r *Record) {
	if r.Value != nil {
		d.AddHash(r.Hash())
	}
}

// Remove takes back an Add of the same record.
func (d *Digest) Remove(r *Record) {
	if r.Value != nil {
		d.RemoveHash(r.Hash())
	}
}

// AddHash counts in the record that has the hash h.
func (d *Digest) AddHash(h RecordHash) {
	for i := range d {
		d[i] += binary.BigEndian.Uint64(h[8*i:])
	}
}

// RemoveHash takes back an AddHash.
func (d *Digest) RemoveHash(h RecordHash) {
	for i := range d {
		d[i] -= binary.BigEndian.Uint64(h[8*i:])
	}
}

// Plus returns the digest of the records of d and o together, which have no key in common.
func (d Digest) Plus(o Digest) Digest {
	for i := range d {
		d[i] += o[i]
	}
	return d
}

// Bytes returns the digest as it is stored and sent: its lanes in order, big-endian.
func (d Digest) Bytes() (b [32]byte) {
	for i, lane := range d {
		binary.BigEndian.PutUint64(b[8*i:], lane)
	}
	return b
}

// DigestOf is the inverse of Bytes.
func DigestOf(b [32]byte) (d Digest) {
	for i := range d {
		d[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return d
}

// String returns the digest as 64 hexadecimal digits.
func (d Digest) String() string {
	b := d.Bytes()
	return hex.EncodeToString(b[:])
}
