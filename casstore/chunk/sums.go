package chunk

import "encoding/binary"

// Sums puts the names of the chunks that hold plains into ids, which has as many. It is [Sum] of each, in half the time where the
// processor hashes two as fast as one.
func Sums(ids []ID, plains [][]byte) {
	if twoAtOnce && len(plains) > 1 {
		sumsTwoAtOnce(ids, plains)
		return
	}
	for i, p := range plains {
		ids[i] = Sum(p)
	}
}

// sumsTwoAtOnce has two lanes, each of which goes on with the next chunk when it is done with one.
func sumsTwoAtOnce(ids []ID, plains [][]byte) {
	var a, b lane
	next := 0
	busy := func(l *lane) bool {
		if len(l.rest) == 0 && next < len(plains) {
			l.begin(&ids[next], plains[next])
			next++
		}
		return len(l.rest) > 0
	}
	for busy(&a) && busy(&b) {
		n := min(len(a.rest), len(b.rest))
		compress2(&a.state, &b.state, &a.rest[0], &b.rest[0], n/blockSize)
		a.went(n)
		b.went(n)
	}
	var idle state
	for _, l := range []*lane{&a, &b} {
		for n := len(l.rest); n > 0; n = len(l.rest) {
			compress2(&l.state, &idle, &l.rest[0], &l.rest[0], n/blockSize)
			l.went(n)
		}
	}
}

// blockSize is what SHA-256 takes at a time, in bytes.
const blockSize = 64

// state is a state of SHA-256, whose words A to H lie as F E B A H G D C.
type state [8]uint32

var initial = state{0x9b05688c, 0x510e527f, 0xbb67ae85, 0x6a09e667, 0x5be0cd19, 0x1f83d9ab, 0xa54ff53a, 0x3c6ef372}

// lane hashes a chunk.
type lane struct {
	id    *ID
	state state
	rest  []byte // whole blocks, of the chunk and then of tail; nothing when the chunk is done
	tail  []byte // the last blocks, with what ends a message; nil when they are in rest
	room  [2 * blockSize]byte
}

func (l *lane) begin(id *ID, plain []byte) {
	whole := len(plain) &^ (blockSize - 1)
	n := copy(l.room[:], plain[whole:])
	l.tail = l.room[:(n+8)/blockSize*blockSize+blockSize]
	l.tail[n] = 0x80
	clear(l.tail[n+1:])
	binary.BigEndian.PutUint64(l.tail[len(l.tail)-8:], uint64(len(plain))*8)
	l.id, l.state, l.rest = id, initial, plain[:whole]
	l.went(0)
}

// went notes that n bytes of rest are in the state.
func (l *lane) went(n int) {
	if l.rest = l.rest[n:]; len(l.rest) > 0 {
		return
	}
	if l.rest, l.tail = l.tail, nil; len(l.rest) > 0 {
		return
	}
	for i, word := range []int{3, 2, 7, 6, 1, 0, 5, 4} {
		binary.BigEndian.PutUint32(l.id[4*i:], l.state[word])
	}
}
