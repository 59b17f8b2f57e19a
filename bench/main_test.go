package bench

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/bench/step"
	"github.com/carrelfs/carrel/fusefs"
)

// The test binary is also the program that scripts run steps with.
func TestMain(m *testing.M) {
	fusefs.HelperMain()
	if len(os.Args) > 1 && os.Args[1] == step.Command {
		if err := step.Main(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			syscall.Exit(1)
		}
		syscall.Exit(0) // os.Exit would let the race detector sleep for a second
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		if buildDir != "" {
			if err := os.RemoveAll(buildDir); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
		os.Exit(status)
	}))
}
