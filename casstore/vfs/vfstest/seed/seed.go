// Package seed gives the tests of all packages what is random in them.
package seed

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Variable is the environment variable that [Of] reads.
const Variable = "VFSTEST_SEED"

// Of returns the seed that the environment variable VFSTEST_SEED gives, or else one at random.
func Of(t testing.TB) uint64 {
	t.Helper()
	given, ok := os.LookupEnv(Variable)
	if !ok {
		return rand.Uint64()
	}
	seed, err := strconv.ParseUint(given, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", Variable, err)
	}
	return seed
}
