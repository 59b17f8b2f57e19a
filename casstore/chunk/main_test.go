package chunk

import (
	"testing"

	"go.uber.org/goleak"
)

// The package starts no goroutines, and neither do the libraries as it uses them.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
