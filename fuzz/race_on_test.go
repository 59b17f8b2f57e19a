//go:build race

package fuzz

// raceEnabled says that this binary has the race detector in it.
const raceEnabled = true
