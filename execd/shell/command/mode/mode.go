// Package mode reads and writes permission bits as chmod(1), ls(1), stat(1) and find(1) do.
package mode

import (
	"errors"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// ErrInvalid says that a text is no mode.
var ErrInvalid = errors.New("invalid mode")

// Change is what a mode asks for.
type Change struct {
	octal  bool
	bits   uint32
	digits int
	steps  []step
}

// step is one of the parts of u+x,go=r.
type step struct {
	who     uint32 // the bits that it is about
	all     bool   // no who was given: the umask decides
	op      byte
	bits    uint32
	copy    byte // u, g or o: take the bits from there
	ifExec  bool // X
	special uint32
}

// Parse reads an octal or symbolic mode.
func Parse(text string) (Change, error) {
	if text == "" {
		return Change{}, ErrInvalid
	}
	if text[0] >= '0' && text[0] <= '7' {
		n, err := strconv.ParseUint(text, 8, 32)
		if err != nil || uint32(n) > vfs.ModeMask {
			return Change{}, ErrInvalid
		}
		return Change{octal: true, bits: uint32(n), digits: len(text)}, nil
	}
	var c Change
	for _, part := range strings.Split(text, ",") {
		if err := c.part(part); err != nil {
			return Change{}, err
		}
	}
	return c, nil
}

// part reads one who and the operations on it.
func (c *Change) part(text string) error {
	who := uint32(0)
	i := 0
	for ; i < len(text); i++ {
		switch text[i] {
		case 'u':
			who |= 0o4700
		case 'g':
			who |= 0o2070
		case 'o':
			who |= 0o1007
		case 'a':
			who |= 0o7777
		default:
			goto operations
		}
	}
operations:
	all := who == 0
	if all {
		who = vfs.ModeMask
	}
	if i == len(text) {
		return ErrInvalid
	}
	for i < len(text) {
		s := step{who: who, all: all, op: text[i]}
		if strings.IndexByte("+-=", s.op) < 0 {
			return ErrInvalid
		}
		for i++; i < len(text) && strings.IndexByte("+-=", text[i]) < 0; i++ {
			if !s.letter(text[i]) {
				return ErrInvalid
			}
		}
		c.steps = append(c.steps, s)
	}
	return nil
}

func (s *step) letter(l byte) bool {
	switch l {
	case 'r':
		s.bits |= 0o444
	case 'w':
		s.bits |= 0o222
	case 'x':
		s.bits |= 0o111
	case 'X':
		s.ifExec = true
	case 's':
		s.special |= 0o6000
	case 't':
		s.special |= 0o1000
	case 'u', 'g', 'o':
		s.copy = l
	default:
		return false
	}
	return true
}

// Apply returns the mode that the change makes of old. A directory keeps set-ID bits that an octal mode of up to four
// digits does not name.
func (c Change) Apply(old uint32, dir bool, umask uint32) uint32 {
	if c.octal {
		if dir && c.digits < 5 {
			return c.bits | old&0o6000
		}
		return c.bits
	}
	for _, s := range c.steps {
		old = s.apply(old, dir, umask)
	}
	return old
}

func (s step) apply(old uint32, dir bool, umask uint32) uint32 {
	bits := s.bits
	if s.ifExec && (dir || old&0o111 != 0) {
		bits |= 0o111
	}
	if shift, ok := map[byte]uint{'u': 6, 'g': 3, 'o': 0}[s.copy]; ok {
		three := old >> shift & 7
		bits |= three<<6 | three<<3 | three
	}
	who := s.who
	if s.all {
		who &^= umask & 0o777
	}
	change := (bits | s.special) & who
	switch s.op {
	case '+':
		return old | change
	case '-':
		return old &^ change
	}
	clear := s.who & 0o777
	if s.special != 0 || !dir {
		clear = s.who
	}
	return old&^clear | change
}

// Letter returns the letter of a type: ls(1)'s first column, and find's -type with '-' as 'f'.
func Letter(t vfs.Type) byte {
	switch t {
	case vfs.TypeDir:
		return 'd'
	case vfs.TypeSymlink:
		return 'l'
	case vfs.TypeFIFO:
		return 'p'
	case vfs.TypeSocket:
		return 's'
	case vfs.TypeCharDev:
		return 'c'
	case vfs.TypeBlockDev:
		return 'b'
	}
	return '-'
}

// String returns the ten characters of ls -l.
func String(a vfs.Attr) string {
	out := []byte("-rwxrwxrwx")
	out[0] = Letter(a.Type)
	for i := range 9 {
		if a.Mode&(0o400>>i) == 0 {
			out[i+1] = '-'
		}
	}
	for _, s := range []struct {
		bit  uint32
		at   int
		with byte
	}{{vfs.ModeSetUID, 3, 's'}, {vfs.ModeSetGID, 6, 's'}, {vfs.ModeSticky, 9, 't'}} {
		if a.Mode&s.bit != 0 {
			if out[s.at] == '-' {
				s.with &^= 0x20
			}
			out[s.at] = s.with
		}
	}
	return string(out)
}

// Format returns the type bits of st_mode, for what prints it raw.
func Format(t vfs.Type) uint32 {
	switch t {
	case vfs.TypeDir:
		return 0o040000
	case vfs.TypeSymlink:
		return 0o120000
	case vfs.TypeFIFO:
		return 0o010000
	case vfs.TypeSocket:
		return 0o140000
	case vfs.TypeCharDev:
		return 0o020000
	case vfs.TypeBlockDev:
		return 0o060000
	}
	return 0o100000
}

// Words returns what stat(1) and messages call a node.
func Words(a vfs.Attr) string {
	switch a.Type {
	case vfs.TypeDir:
		return "directory"
	case vfs.TypeSymlink:
		return "symbolic link"
	case vfs.TypeFIFO:
		return "fifo"
	case vfs.TypeSocket:
		return "socket"
	case vfs.TypeCharDev:
		return "character special file"
	case vfs.TypeBlockDev:
		return "block special file"
	}
	if a.Size == 0 {
		return "regular empty file"
	}
	return "regular file"
}
