package chunk

import "github.com/PlakarKorp/go-cdc-chunkers/chunkers/fastcdc"

// Cutter finds where a stream of bytes is cut into chunks: where its content says so. Where a chunk ends depends only on
// the bytes since the end of the one before: a stream that starts at an old cut is cut in the same places, and after an
// insertion the old cuts are found again. The cuts are the same in every process and on every machine.
//
// The algorithm is FastCDC as the library calls "fastcdc-v1.0.0" (its plain "fastcdc" keeps the masks of 8 KiB chunks
// whatever the size), with its table. The library itself wants to read the stream into a buffer of its own, which it
// then uses again: two copies of every byte that a Cutter does without.
//
// The zero Cutter is at the start of a stream. It is for one goroutine at a time.
type Cutter struct {
	n    int    // bytes of the chunk under way
	hash uint64 // of the last 64 of them, without those before MinSize
}

// Cut takes the next bytes of the stream, however many. The first n of them belong to the chunk under way; when ends is
// set it ends there, and the rest is to be given again, as the beginning of the next. A chunk has MinSize to MaxSize
// bytes; the last one ends with the stream, which the caller knows, and may be shorter.
func (c *Cutter) Cut(p []byte) (n int, ends bool) {
	p = p[:min(len(p), MaxSize-c.n)]
	from := c.upTo(p, MinSize)
	for _, zone := range [...]struct {
		end  int
		mask uint64
	}{{AvgSize, maskBeforeAvg}, {MaxSize, maskAfterAvg}} {
		part := p[from:c.upTo(p, zone.end)]
		if i := c.find(part, zone.mask); i < len(part) {
			*c = Cutter{}
			return from + i, true
		}
		from += len(part)
	}
	if c.n += len(p); c.n < MaxSize {
		return len(p), false
	}
	*c = Cutter{}
	return len(p), true
}

// upTo returns how many bytes of p there are up to a length of the chunk.
func (c *Cutter) upTo(p []byte, length int) int { return min(len(p), max(0, length-c.n)) }

// find returns the index of the first byte of p with which the hash has none of the mask's bits; len(p) when there is
// none. It takes two bytes at a time, because each step has to wait for the hash of the one before: that is 1.4 times as
// fast.
func (c *Cutter) find(p []byte, mask uint64) int {
	table, hash := &fastcdc.G, c.hash
	i := 0
	for ; i+2 <= len(p); i += 2 {
		first := table[p[i]]
		both := first<<1 + table[p[i+1]]
		if (hash<<1+first)&mask == 0 {
			return i
		}
		if hash = hash<<2 + both; hash&mask == 0 {
			return i + 1
		}
	}
	if i < len(p) {
		if hash = hash<<1 + table[p[i]]; hash&mask == 0 {
			return i
		}
	}
	c.hash = hash
	return len(p)
}

// The masks: as many bits as the logarithm of AvgSize, and two more before that size, where a cut comes too early, two
// fewer behind it.
var (
	maskBeforeAvg = spread(17 + 2)
	maskAfterAvg  = spread(17 - 2)
)

// spread returns a mask of n bits, spread over 64 from the highest down.
func spread(n int) (mask uint64) {
	for i := range n {
		mask |= 1 << (63 - i*(64/n))
	}
	return mask
}
