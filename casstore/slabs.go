package casstore

import "github.com/carrelfs/carrel/casstore/writebuf"

// OnSlabs sets the function that is called with how many bytes the dirty bytes of large writes take beside Go's heap, up
// to 96 MiB in all stores of the process, when that has changed by some megabytes. A program that bounds its memory leaves
// to the heap what they do not need (debug.SetMemoryLimit). The function is called with locks held, so it must neither
// block nor use a store.
func OnSlabs(f func(bytes int)) { writebuf.OnSlabs(f) }
