package basic

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/carrelfs/carrel/execd/shell/command/printf"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

func ok(context.Context, *tool.Call) error { return nil }

func no(context.Context, *tool.Call) error { return tool.Exit(1) }

// echo is GNU's: only what is made of n, e and E is an option.
func echo(_ context.Context, c *tool.Call) error {
	args := c.Args[1:]
	newline, escapes := true, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		for _, letter := range args[0][1:] {
			switch letter {
			case 'n':
				newline = false
			default:
				escapes = letter == 'e'
			}
		}
		args = args[1:]
	}
	text := strings.Join(args, " ")
	if escapes {
		var stop bool
		if text, stop = printf.Unescape(text); stop {
			newline = false
		}
	}
	_, err := c.Out.WriteString(text)
	if newline {
		err = c.Out.WriteByte('\n')
	}
	return err
}

func format(ctx context.Context, c *tool.Call) error {
	args := c.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return c.Usage(1, "missing operand")
	}
	p := &printf.Printer{
		Out: c.Out, Complain: func(m string) { c.Say("%s", m) }, Step: func() error { return c.Step(ctx, 1) },
		Now: c.Now, Zone: c.Zone(ctx), Coreutils: true,
	}
	err := p.Print(args[0], args[1:])
	c.Status = p.Status
	return err
}

func yes(ctx context.Context, c *tool.Call) error {
	line := "y\n"
	if words := afterDashes(c.Args[1:]); len(words) > 0 {
		line = strings.Join(words, " ") + "\n"
	}
	block := []byte(strings.Repeat(line, max(8192/len(line), 1)))
	for {
		if err := c.Step(ctx, 8); err != nil {
			return err
		}
		if _, err := c.Stdout.Write(block); err != nil {
			return err
		}
	}
}

// afterDashes are the operands of who has no options.
func afterDashes(args []string) []string {
	if len(args) > 0 && args[0] == "--" {
		return args[1:]
	}
	return args
}

func sleep(ctx context.Context, c *tool.Call) error {
	args := afterDashes(c.Args[1:])
	if len(args) == 0 {
		return c.Usage(1, "missing operand")
	}
	var total time.Duration
	for _, arg := range args {
		d, ok := duration(arg)
		if !ok {
			return c.Usage(1, "invalid time interval '%s'", arg)
		}
		total += d
	}
	timer := time.NewTimer(total)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// duration reads a number with s, m, h or d.
func duration(text string) (time.Duration, bool) {
	unit := time.Second
	if text != "" {
		if u, ok := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[text[len(text)-1]]; ok {
			unit, text = u, text[:len(text)-1]
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f < 0 || math.IsNaN(f) {
		return 0, false
	}
	if f > math.MaxInt64/float64(unit) {
		return math.MaxInt64, true
	}
	return time.Duration(f * float64(unit)), true
}
