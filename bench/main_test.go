package bench

import (
	"fmt"
	"os"
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
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
