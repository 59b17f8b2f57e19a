//go:build race

package worker

// raceDetector says that the race detector is in the program. It reserves terabytes of the address space.
const raceDetector = true
