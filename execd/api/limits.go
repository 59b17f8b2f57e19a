package api

import "github.com/carrelfs/carrel/execd"

const (
	// maxRequest bounds a request that is kept in memory: a spec with all of its parts, as JSON and base64 make it.
	maxRequest = 2 * (execd.MaxSource + 2*execd.MaxInput + execd.MaxArgs)
	// maxOutput bounds the output of each stream in the answer to POST …/exec; all of it is in the exec's log.
	maxOutput = 1 << 20
	// maxRead bounds the bytes of a file in one answer.
	maxRead = 4 << 20
	// maxChanges is how many changes of files one message has. More of one revision come in several.
	maxChanges = 500
	// maxUntold is how many pieces of news, of which there are ten in a second at most, may have nothing for who watches a part
	// of a workspace before it is told that it need not go on from before them.
	maxUntold = 100
	// maxListing bounds the entries of a directory in one answer.
	maxListing = 100_000
)
