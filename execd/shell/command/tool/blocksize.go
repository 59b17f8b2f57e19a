package tool

import (
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
)

// BlockSize is the unit in which du, df and ls show sizes.
type BlockSize struct {
	Unit   uint64  // bytes
	Human  float64 // when not 0, the base of a unit that suits each size
	Suffix string  // what stands after a size, when the unit was given without a number
}

// BlockSize reads the value of --block-size as GNU's tools do: a number with a unit, a unit, "human-readable" or "si".
// What is wrong with it is said.
func (c *Call) BlockSize(o getopt.Option) (BlockSize, error) {
	text := strings.TrimPrefix(o.Value, "'")
	switch {
	case text != "" && strings.HasPrefix("human-readable", text):
		return BlockSize{Unit: 1, Human: 1024}, nil
	case text != "" && strings.HasPrefix("si", text):
		return BlockSize{Unit: 1, Human: 1000}, nil
	}
	n, err := Count(text, 0, "eEgGkKmMpPtTyYzZ0")
	switch {
	case err != nil:
		return BlockSize{}, c.Refuse(o, err)
	case n == 0:
		return BlockSize{}, c.Refuse(o, ErrNumber)
	}
	b := BlockSize{Unit: uint64(n)}
	if text[0] > '9' {
		letter := strings.ToUpper(text[:1])
		if text[1:] == "B" && letter == "K" {
			letter = "k"
		}
		b.Suffix = letter + text[1:]
	}
	return b, nil
}

// Format is a size in these units, rounded up.
func (b BlockSize) Format(n uint64) string {
	if b.Human > 0 {
		return Human(n, b.Human)
	}
	units := n / b.Unit
	if n%b.Unit > 0 {
		units++
	}
	return strconv.FormatUint(units, 10) + b.Suffix
}
