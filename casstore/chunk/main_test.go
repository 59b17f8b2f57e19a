package chunk

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// No test leaves a goroutine behind. The fuzzer does, when its time is over.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.fuzz").Value.String() != "" {
		os.Exit(m.Run())
	}
	goleak.VerifyTestMain(m)
}
