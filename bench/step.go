package bench

import (
	"fmt"
	"slices"
	"strings"
)

// steps are what scripts can have done by 'step NAME ARGUMENTS', in one process, in its working directory.
var steps = map[string]func(args []string) error{}

// StepMain does one step. Programs that call Run must lead the arguments "bench-step NAME ARGUMENTS" to it.
func StepMain(args []string) error {
	if len(args) == 0 || steps[args[0]] == nil {
		names := make([]string, 0, len(steps))
		for name := range steps {
			names = append(names, name)
		}
		slices.Sort(names)
		return fmt.Errorf("the steps are %s", strings.Join(names, " "))
	}
	if err := steps[args[0]](args[1:]); err != nil {
		return fmt.Errorf("step %s: %w", strings.Join(args, " "), err)
	}
	return nil
}
