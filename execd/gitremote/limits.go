package gitremote

import "time"

const (
	// maxRefs is the largest list of references that a server may send: some hundred thousand of them.
	maxRefs = 64 << 20
	// maxPack is the largest pack: what a script takes longer to fetch than it may run.
	maxPack = 16 << 30
	// maxFault is how much is read of what a server says is wrong.
	maxFault = 64 << 10
	// patience is how long a server may be silent before it answers: it may look for what to send.
	patience = 5 * time.Minute
)
