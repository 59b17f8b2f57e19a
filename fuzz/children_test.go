package fuzz

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// raceEnv makes the children of a test binary with the race detector have it too.
const raceEnv = "CARREL_RACE"

// childBinary is what daemons and workers run: this binary, or one like it.
var childBinary = "/proc/self/exe"

// buildChildren builds what the children of a binary with the race detector run: the same without it. The detector makes a
// daemon ten times slower and says nothing of crashes and full disks; the tests in process, fusefs and casstore are where
// it listens. It returns what removes the build.
func buildChildren() (remove func(), err error) {
	if !raceEnabled || os.Getenv(raceEnv) != "" {
		return func() {}, nil
	}
	dir, err := os.MkdirTemp("", "carrel-fuzz-*")
	if err != nil {
		return nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	childBinary = filepath.Join(dir, "fuzz.test")
	if out, err := exec.Command("go", "test", "-c", "-o", childBinary, ".").CombinedOutput(); err != nil {
		remove()
		return nil, fmt.Errorf("build the children: %w: %s", err, out)
	}
	return remove, nil
}
