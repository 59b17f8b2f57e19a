package machines

import "time"

const (
	// maxName bounds the name of a machine, in bytes.
	maxName = 64
	// greeting is how long a machine and a server may take to say the few bytes with which a stream begins.
	greeting = 15 * time.Second
	// maxCalls is how many calls a machine answers at a time. Following an exec is one, for as long as that takes.
	maxCalls = 1024
	// minPause and maxPause are how long a machine waits before it offers itself again: twice as long each time.
	minPause = time.Second
	maxPause = 10 * time.Second
)
