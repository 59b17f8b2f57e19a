package js

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run has workers be the program itself when this is built with the race detector: with that they take twenty times as long, and
// what runs beside what is on this side of the connection. Package worker is tested with it.
func run(m *testing.M) int {
	if raceDetector {
		dir, err := os.MkdirTemp("", "carrel-js-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		built := filepath.Join(dir, "carrel")
		build := exec.Command("go", "build", "-o", built, "github.com/carrelfs/carrel/cmd/carrel")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
			return 1
		}
		program = built
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}
