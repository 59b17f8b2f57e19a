package basic

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/printf"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// sequence is what one seq prints.
type sequence struct {
	*tool.Call
	first, step, last float64
	precision         int
	format            string
	separator         string
	equalWidth        bool
	formatted         bool // -f was given
}

// seq parses its options itself: -1 is a number.
func seq(ctx context.Context, c *tool.Call) error {
	s := &sequence{Call: c, separator: "\n"}
	args, err := s.options(c.Args[1:])
	if err != nil {
		return err
	}
	if s.formatted {
		if err := s.checkFormat(); err != nil {
			return err
		}
		if s.equalWidth {
			return c.Usage(1, "format string may not be specified when printing equal width strings")
		}
	}
	if len(args) >= 1 && len(args) <= 3 {
		if done, err := s.printWhole(ctx, args); done || err != nil {
			return err
		}
	}
	var numbers [3]float64
	for i, arg := range args {
		if i == 3 {
			return c.Usage(1, "extra operand '%s'", arg)
		}
		if numbers[i], err = strconv.ParseFloat(strings.TrimLeft(arg, " \t\n"), 64); err != nil || strings.Contains(arg, "_") {
			return c.Usage(1, "invalid floating point argument: '%s'", arg)
		}
		if math.IsNaN(numbers[i]) {
			return c.Usage(1, "invalid 'not-a-number' argument: '%s'", arg)
		}
		if i < 2 || len(args) == 3 {
			if _, digits, ok := strings.Cut(arg, "."); ok && i != len(args)-1 {
				s.precision = max(s.precision, len(digits))
			}
		}
	}
	switch len(args) {
	case 0:
		return c.Usage(1, "missing operand")
	case 1:
		s.first, s.step, s.last = 1, 1, numbers[0]
	case 2:
		s.first, s.step, s.last = numbers[0], 1, numbers[1]
	case 3:
		s.first, s.step, s.last = numbers[0], numbers[1], numbers[2]
	}
	if s.step == 0 {
		return c.Usage(1, "invalid Zero increment value: '%s'", args[1])
	}
	return s.print(ctx)
}

func (s *sequence) options(args []string) ([]string, error) {
	for len(args) > 0 {
		arg := args[0]
		if !strings.HasPrefix(arg, "-") || len(arg) > 1 && (arg[1] >= '0' && arg[1] <= '9' || arg[1] == '.') {
			break
		}
		args = args[1:]
		if arg == "--" {
			break
		}
		if arg == "-w" || arg == "--equal-width" {
			s.equalWidth = true
			continue
		}
		to := &s.separator
		name, value, given := strings.Cut(arg, "=")
		switch {
		case strings.HasPrefix(arg, "-s"):
			value, given = arg[2:], len(arg) > 2
		case strings.HasPrefix(arg, "-f"):
			to, value, given = &s.format, arg[2:], len(arg) > 2
		case name == "--format":
			to = &s.format
		case name != "--separator":
			return nil, s.Usage(1, "invalid option -- '%s'", strings.TrimLeft(arg, "-"))
		}
		if !given {
			if len(args) == 0 {
				return nil, s.Usage(1, "option requires an argument -- '%s'", arg[1:2])
			}
			value, args = args[0], args[1:]
		}
		*to = value
		s.formatted = s.formatted || to == &s.format
	}
	return args, nil
}

func (s *sequence) print(ctx context.Context) error {
	width := 0
	if s.equalWidth {
		width = max(len(s.text(s.first, 0)), len(s.text(s.end(), 0)))
	}
	for i := 0; ; i++ {
		v := s.first + float64(i)*s.step
		if s.step > 0 && v > s.last+s.slack() || s.step < 0 && v < s.last-s.slack() {
			break
		}
		if i%1024 == 1023 {
			if err := s.Step(ctx, 100); err != nil {
				return err
			}
		}
		if i > 0 {
			_, _ = s.Out.WriteString(s.separator)
		}
		if _, err := s.Out.WriteString(s.text(v, width)); err != nil {
			return err
		}
		if math.IsInf(s.step, 0) {
			break
		}
	}
	if s.Out.Buffered() > 0 || s.step > 0 && s.first <= s.last || s.step < 0 && s.first >= s.last {
		return s.Out.WriteByte('\n')
	}
	return nil
}

// slack is what rounding may have cost at the last step.
func (s *sequence) slack() float64 { return math.Abs(s.step) * 1e-10 }

// end is the last value that is printed.
func (s *sequence) end() float64 {
	if math.IsInf(s.last, 0) {
		return s.first
	}
	return s.first + math.Floor((s.last-s.first)/s.step+1e-10)*s.step
}

func (s *sequence) text(v float64, width int) string {
	if s.format != "" {
		var b strings.Builder
		p := printf.Printer{Out: &b}
		_ = p.Print(s.format, []string{strconv.FormatFloat(v, 'f', -1, 64)})
		return b.String()
	}
	text := strconv.FormatFloat(v, 'f', s.precision, 64)
	if pad := width - len(text); pad > 0 {
		if strings.HasPrefix(text, "-") {
			return "-" + strings.Repeat("0", pad) + text[1:]
		}
		return strings.Repeat("0", pad) + text
	}
	return text
}
