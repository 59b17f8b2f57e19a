// Package step has the work that a benchmark times inside of one process, without the starts of programs: each step is
// one process, does its work in its working directory and prints how many nanoseconds that took. What it prepares, such
// as random bytes, is not in them.
//
// The steps use plain system calls. Go's files are polled, which on a FUSE mount is a request more for each open that
// no C program makes.
package step

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Command begins the arguments of a process that is to do a step.
const Command = "bench-step"

// step is what one name does with its numbers.
type step struct {
	usage string // the names of its numbers
	do    func(n []int64, t *timer) error
}

// timer measures the part of a step that counts.
type timer struct{ elapsed time.Duration }

func (t *timer) time(f func() error) error {
	start := time.Now()
	err := f()
	t.elapsed += time.Since(start)
	return err
}

var steps = merge(nameSteps, byteSteps, storeSteps)

func merge(parts ...map[string]step) map[string]step {
	all := map[string]step{}
	for _, p := range parts {
		maps.Copy(all, p)
	}
	return all
}

// Main does a step and prints how long it took: args are its name and its numbers.
func Main(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("the steps are %s", strings.Join(slices.Sorted(maps.Keys(steps)), " "))
	}
	s, ok := steps[args[0]]
	if !ok {
		return fmt.Errorf("there is no step %q", args[0])
	}
	numbers, err := parse(args[1:])
	if err == nil && len(numbers) != len(strings.Fields(s.usage)) {
		err = fmt.Errorf("it takes %s", s.usage)
	}
	var t timer
	if err == nil {
		err = s.do(numbers, &t)
	}
	if err != nil {
		return fmt.Errorf("step %s: %w", strings.Join(args, " "), err)
	}
	_, err = fmt.Println(t.elapsed.Nanoseconds())
	return err
}

// parse reads numbers that are not negative and, being counts and sizes, above zero where it matters.
func parse(args []string) ([]int64, error) {
	numbers := make([]int64, len(args))
	for i, a := range args {
		n, err := strconv.ParseInt(a, 10, 64)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no number above zero", a)
		}
		numbers[i] = n
	}
	return numbers, nil
}

// Time reads what a step has printed.
func Time(stdout []byte) (time.Duration, error) {
	ns, err := strconv.ParseInt(strings.TrimSpace(string(stdout)), 10, 64)
	if err != nil || ns <= 0 {
		return 0, fmt.Errorf("a step has printed %q in place of its time", stdout)
	}
	return time.Duration(ns), nil
}
