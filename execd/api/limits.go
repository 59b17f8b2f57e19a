package api

import "github.com/carrelfs/carrel/execd"

const (
	// maxRequest bounds a request that is kept in memory: a spec with all of its parts, as JSON and base64 make it.
	maxRequest = 2 * (execd.MaxSource + 2*execd.MaxInput + execd.MaxArgs)
	// maxOutput bounds the output of each stream in the answer to POST …/exec; all of it is in the exec's log.
	maxOutput = 1 << 20
	// maxListing bounds the entries of a directory in one answer.
	maxListing = 100_000
)
