// Package join is what 'carrel join' runs: a mirror of a workspace on another machine, mounted on a directory.
//
//	carrel join ── mirror (its state in a directory, or in memory)
//	            ├─ mount through fusefs
//	            └─ join.sock in the state's directory: sync now, status, conflicts, resolve
//
// It ends when it is told to or when somebody unmounts the directory: then it unmounts, pushes what is not pushed yet, for as
// long as it may, and says what is left. What is left is in the state, and is pushed by the next join with it.
//
// # What survives a crash
//
// The state: see package mirror. A dead mount is taken away by the next join on the same directory.
package join
