package basic

import (
	"context"
	"math/big"
	"strconv"
	"strings"
)

// whole reads a whole number of any size, in decimal or after 0x in hexadecimal, and how wide -w takes it to be.
func whole(text string) (n *big.Int, width int, ok bool) {
	text = strings.TrimPrefix(strings.TrimLeft(text, " \t\n\v\f\r"), "+")
	digits, negative := strings.CutPrefix(text, "-")
	base := 10
	if hex, ok := strings.CutPrefix(strings.ToLower(digits), "0x"); ok {
		digits, base = hex, 16
	}
	for _, c := range digits {
		if c < '0' || c > '9' && (base == 10 || c|0x20 < 'a' || c|0x20 > 'f') {
			return nil, 0, false
		}
	}
	if n, ok = new(big.Int).SetString(digits, base); !ok || negative && n.Sign() == 0 {
		return nil, 0, false
	}
	if negative {
		n.Neg(n)
	}
	if base == 16 {
		text = n.String()
	}
	return n, len(text), true
}

// printWhole prints a sequence of whole numbers, which floating point would lose the last digits of, or never end for want
// of them. ok is false when one of the numbers is another.
func (s *sequence) printWhole(ctx context.Context, args []string) (ok bool, err error) {
	numbers, width := [3]*big.Int{big.NewInt(1), big.NewInt(1), nil}, 0
	if s.format != "" {
		return false, nil
	}
	for i, arg := range args {
		n, wide, ok := whole(arg)
		if !ok {
			return false, nil
		}
		at := i
		if i == len(args)-1 {
			at = 2
		}
		if numbers[at] = n; at != 1 {
			width = max(width, wide)
		}
	}
	if !s.equalWidth {
		width = 0
	}
	first, step, last := numbers[0], numbers[1], numbers[2]
	if step.Sign() == 0 {
		return false, nil
	}
	after := new(big.Int).Add(last, step)
	if first.IsInt64() && step.IsInt64() && last.IsInt64() && after.IsInt64() {
		return true, s.printSmall(ctx, first.Int64(), step.Int64(), last.Int64(), width)
	}
	some := false
	for n := first; n.Cmp(last)*step.Sign() <= 0; n = new(big.Int).Add(n, step) {
		if err := s.Step(ctx, 1); err != nil {
			return true, err
		}
		if err := s.item(n.Append(nil, 10), width, some); err != nil {
			return true, err
		}
		some = true
	}
	return true, s.close(some)
}

// printSmall is printWhole for numbers none of which, nor the one after the last, is beyond 64 bits.
func (s *sequence) printSmall(ctx context.Context, first, step, last int64, width int) error {
	some := false
	var digits [24]byte
	for n, i := first, 0; step > 0 && n <= last || step < 0 && n >= last; n, i = n+step, i+1 {
		if i%1024 == 1023 {
			if err := s.Step(ctx, 100); err != nil {
				return err
			}
		}
		if err := s.item(strconv.AppendInt(digits[:0], n, 10), width, some); err != nil {
			return err
		}
		some = true
	}
	return s.close(some)
}

// item writes one number, filled up with zeros, and what separates it from the one before.
func (s *sequence) item(digits []byte, width int, some bool) error {
	if some {
		_, _ = s.Out.WriteString(s.separator)
	}
	if fill := width - len(digits); fill > 0 {
		if digits[0] == '-' {
			_ = s.Out.WriteByte('-')
			digits = digits[1:]
		}
		for range fill {
			_ = s.Out.WriteByte('0')
		}
	}
	_, err := s.Out.Write(digits)
	return err
}

func (s *sequence) close(some bool) error {
	if !some {
		return nil
	}
	return s.Out.WriteByte('\n')
}

// checkFormat refuses a format that has not just one directive for a floating point number.
func (s *sequence) checkFormat() error {
	found := 0
	for rest := s.format; ; {
		i := strings.IndexByte(rest, '%')
		if i < 0 {
			break
		}
		if rest = rest[i+1:]; strings.HasPrefix(rest, "%") {
			rest = rest[1:]
			continue
		}
		if found++; found > 1 {
			return s.Die(1, "format '%s' has too many %% directives", s.format)
		}
		rest = strings.TrimLeft(rest, "-+#0 '")
		rest = strings.TrimLeft(rest, "0123456789")
		if after, ok := strings.CutPrefix(rest, "."); ok {
			rest = strings.TrimLeft(after, "0123456789")
		}
		rest = strings.TrimPrefix(rest, "L")
		if rest == "" {
			return s.Die(1, "format '%s' ends in %%", s.format)
		}
		if strings.IndexByte("efgaEFGA", rest[0]) < 0 {
			return s.Die(1, "format '%s' has unknown %%%c directive", s.format, rest[0])
		}
	}
	if found == 0 {
		return s.Die(1, "format '%s' has no %% directive", s.format)
	}
	return nil
}
