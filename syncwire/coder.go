package syncwire

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
)

// coder walks over the fields of a message: it writes them, reads them, or puts them into words. A message names its
// fields once, in the order of the protocol, so that what is written is what is read and what vectors and PROTOCOL.md say.
//
// The first error stays; after it, nothing more is written or read. Only reading sets what fields point to: others may read
// a message while it is written.
type coder struct {
	mode coderMode
	b    []byte // writing: what was written; reading: what is left; wording: the text
	err  error
	path string // wording: stands before each name
	tail []byte // writing: the last field, which stands behind b, when it is too long to be copied there
}

type coderMode uint8

const (
	writing coderMode = iota
	reading
	wording
)

// fail sets the error, unless there is one.
func (c *coder) fail(name, format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("field %s: %s: %w", name, fmt.Sprintf(format, args...), ErrProtocol)
	}
}

func (c *coder) say(name, value string) {
	if value == "" {
		value = "empty"
	}
	c.b = append(c.b, c.path+name+" "+value+"\n"...)
}

// cut takes n bytes off what is left to read.
func (c *coder) cut(name string, n int) []byte {
	if c.err != nil || len(c.b) < n {
		c.fail(name, "%d bytes are left, %d are needed", len(c.b), n)
		return nil
	}
	out := c.b[:n:n]
	c.b = c.b[n:]
	return out
}

func (c *coder) cutUint(name string) uint64 {
	v, n := binary.Uvarint(c.b)
	if c.err != nil || n <= 0 || n > 1 && c.b[n-1] == 0 {
		c.fail(name, "no integer in its shortest form")
		return 0
	}
	c.b = c.b[n:]
	return v
}

// number is a field that is an integer of at most max, sent as an uvarint.
func number[T ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int](c *coder, name string, v *T, max uint64) {
	if c.err != nil {
		return
	}
	n := uint64(*v)
	switch c.mode {
	case writing:
		c.b = binary.AppendUvarint(c.b, n)
	case reading:
		n = c.cutUint(name)
	case wording:
		c.say(name, strconv.FormatUint(n, 10))
	}
	if n > max {
		c.fail(name, "%d is above %d", n, max)
		return
	}
	if c.mode == reading {
		*v = T(n)
	}
}

// fixed is a field of as many bytes as v has.
func (c *coder) fixed(name string, v []byte) {
	switch {
	case c.err != nil:
	case c.mode == writing:
		c.b = append(c.b, v...)
	case c.mode == reading:
		copy(v, c.cut(name, len(v)))
	case c.mode == wording:
		c.say(name, hex.EncodeToString(v))
	}
}

// block is a field of at most max bytes behind their count. What is read aliases the frame.
func (c *coder) block(name string, v *[]byte, max int) {
	n := len(*v)
	if c.mode != wording {
		number(c, name, &n, uint64(max))
	}
	switch {
	case c.err != nil:
	case c.mode == writing:
		c.b = append(c.b, *v...)
	case c.mode == reading:
		*v = c.cut(name, n)
	case c.mode == wording:
		c.say(name, hex.EncodeToString(*v))
	}
}

// lastBlock is a block behind which nothing more is written.
func (c *coder) lastBlock(name string, v *[]byte, max int) {
	if c.mode != writing {
		c.block(name, v, max)
		return
	}
	n := len(*v)
	if number(c, name, &n, uint64(max)); c.err == nil {
		c.tail = *v
	}
}

// text is a block that people read, or a name.
func (c *coder) text(name string, v *string, max int) {
	b := []byte(*v)
	if c.mode == wording {
		c.say(name, strconv.Quote(*v))
		return
	}
	if c.block(name, &b, max); c.err == nil && c.mode == reading {
		*v = string(b)
	}
}

// list is a field of at most max items behind their count. Memory is taken as items arrive, so that a count alone takes
// none.
func list[T any](c *coder, name string, v *[]T, max int, item func(c *coder, v *T)) {
	n := len(*v)
	number(c, name, &n, uint64(max))
	if c.err != nil {
		return
	}
	if c.mode == reading {
		*v = (*v)[:0]
	}
	outer := c.path
	for i := 0; i < n && c.err == nil; i++ {
		if c.mode == reading {
			*v = append(*v, *new(T))
		}
		if c.mode == wording {
			c.path = outer + name + "[" + strconv.Itoa(i) + "]."
		}
		item(c, &(*v)[i])
	}
	c.path = outer
}
