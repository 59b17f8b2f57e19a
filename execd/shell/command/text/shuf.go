package text

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var shufOptions = getopt.New("ei:n:o:rz", "echo=e", "input-range:=i", "head-count:=n", "output:=o", "repeat=r",
	"zero-terminated=z", "random-source:")

// shuffler is what one shuf does.
type shuffler struct {
	*tool.Call
	echo, repeat bool
	lo, hi       int
	ranged       bool
	count        int // -1 for all
	output       string
	end          byte
	rand         *rand.Rand
}

func shuf(ctx context.Context, c *tool.Call) error {
	options, operands, err := c.Options(shufOptions, 1)
	if err != nil {
		return err
	}
	s := &shuffler{Call: c, count: -1, end: '\n', rand: c.Rand}
	if s.rand == nil {
		s.rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	for _, o := range options {
		if err := s.set(o); err != nil {
			return err
		}
	}
	lines, err := s.lines(ctx, operands)
	if err != nil {
		return err
	}
	if s.output != "" {
		f, err := c.FS.CreateFile(ctx, s.output)
		if err != nil {
			return c.Die(1, "%s: %s", s.output, command.Reason(err))
		}
		defer f.Close()
		c.Out.Reset(f)
	}
	if err := s.write(ctx, lines); err != nil {
		return err
	}
	return c.Out.Flush()
}

func (s *shuffler) set(o getopt.Option) error {
	var err error
	switch o.Name {
	case "e":
		s.echo = true
	case "r":
		s.repeat = true
	case "z":
		s.end = 0
	case "o":
		s.output = o.Value
	case "n":
		if s.count, err = strconv.Atoi(o.Value); err != nil || s.count < 0 {
			return s.Die(1, "invalid line count: '%s'", o.Value)
		}
	case "i":
		lo, hi, _ := strings.Cut(o.Value, "-")
		s.ranged = true
		s.lo, err = strconv.Atoi(lo)
		if err == nil {
			s.hi, err = strconv.Atoi(hi)
		}
		if err != nil || s.hi < s.lo-1 {
			return s.Die(1, "invalid input range: '%s'", o.Value)
		}
	}
	return nil
}

// lines returns what is to be shuffled.
func (s *shuffler) lines(ctx context.Context, operands []string) ([][]byte, error) {
	var lines [][]byte
	switch {
	case s.echo:
		for _, o := range operands {
			lines = append(lines, []byte(o))
		}
		return lines, nil
	case s.ranged:
		if err := s.Take(int64(s.hi-s.lo+1) * 32); err != nil {
			return nil, err
		}
		for i := s.lo; i <= s.hi; i++ {
			if i&0xffff == 0 {
				if err := s.Step(ctx, 1<<10); err != nil {
					return nil, err
				}
			}
			lines = append(lines, strconv.AppendInt(nil, int64(i), 10))
		}
		return lines, nil
	case len(operands) > 1:
		return nil, s.Usage(1, "extra operand '%s'", operands[1])
	}
	name := append(operands, "-")[0]
	data, err := s.ReadFile(ctx, name)
	if err != nil {
		return nil, s.Die(1, "%s: %s", name, command.Reason(err))
	}
	if err := s.Take(24 * int64(bytes.Count(data, []byte{s.end}))); err != nil { // what leads to the lines
		return nil, err
	}
	lines = bytes.Split(data, []byte{s.end})
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	return lines, nil
}

func (s *shuffler) write(ctx context.Context, lines [][]byte) error {
	if s.repeat && len(lines) == 0 {
		return s.Die(1, "no lines to repeat")
	}
	for i := 0; (s.repeat || i < len(lines)) && (s.count < 0 || i < s.count); i++ {
		if i%1024 == 1023 {
			if err := s.Step(ctx, 100); err != nil {
				return err
			}
		}
		at := 0
		if s.repeat {
			at = s.rand.IntN(len(lines))
		} else {
			at = i + s.rand.IntN(len(lines)-i)
			lines[i], lines[at] = lines[at], lines[i]
			at = i
		}
		_, _ = s.Out.Write(lines[at])
		if err := s.Out.WriteByte(s.end); err != nil {
			return err
		}
	}
	return nil
}
