package syncwire

import "strings"

// Rights are what a token allows on a workspace. The values are part of the protocol.
type Rights uint16

// The rights.
const (
	RightRead  Rights = 1 << iota // records, chunks, digests, the feed
	RightWrite                    // pushes, leases, storing chunks
	RightExec                     // running programs
	RightAdmin                    // everything that concerns the workspace as a whole
)

// Has reports whether all of want is allowed.
func (r Rights) Has(want Rights) bool { return r&want == want }

var rightNames = [...]string{"read", "write", "exec", "admin"}

// String returns the names of the rights, with commas between them.
func (r Rights) String() string {
	var names []string
	for i, name := range rightNames {
		if r.Has(1 << i) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// ParseRights is the inverse of String; ok is false for a name that is none.
func ParseRights(s string) (r Rights, ok bool) {
	for name := range strings.SplitSeq(s, ",") {
		i := 0
		for i < len(rightNames) && rightNames[i] != name {
			i++
		}
		if i == len(rightNames) {
			return 0, false
		}
		r |= 1 << i
	}
	return r, true
}
