//go:build race

package chunk

// raceEnabled is for tests that count allocations: under the race detector pools drop what they hold, at random.
const raceEnabled = true
