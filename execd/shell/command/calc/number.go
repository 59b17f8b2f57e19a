package calc

import (
	"errors"
	"math/big"
	"strings"
)

const (
	// maxScale bounds digits after the point, maxBits the length of a number: one operation stays within milliseconds.
	maxScale = 10_000
	maxBits  = 1 << 18
)

var (
	errDivide = errors.New("divide by zero")
	errModulo = errors.New("modulo by zero")
	errRoot   = errors.New("square root of a negative number")
	errBig    = errors.New("number is too large")
)

// number is n / 10^scale. Its parts are never changed in place.
type number struct {
	n     *big.Int
	scale int
}

var zero = number{new(big.Int), 0}

func integer(i int64) number { return number{big.NewInt(i), 0} }

func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// to returns the integer at another scale, cut off towards zero.
func (x number) to(scale int) *big.Int {
	switch {
	case scale > x.scale:
		return new(big.Int).Mul(x.n, pow10(scale-x.scale))
	case scale < x.scale:
		return new(big.Int).Quo(x.n, pow10(x.scale-scale))
	}
	return x.n
}

func (x number) cut(scale int) number {
	if scale >= x.scale {
		return x
	}
	return number{x.to(scale), scale}
}

func (x number) sign() int { return x.n.Sign() }

func (x number) neg() number { return number{new(big.Int).Neg(x.n), x.scale} }

func add(x, y number) number {
	s := max(x.scale, y.scale)
	return number{new(big.Int).Add(x.to(s), y.to(s)), s}
}

func compare(x, y number) int {
	s := max(x.scale, y.scale)
	return x.to(s).Cmp(y.to(s))
}

// mul keeps as many digits after the point as the longer of scale and the operands', at most the sum of theirs.
func mul(x, y number, scale int) (number, error) {
	if x.n.BitLen()+y.n.BitLen() > maxBits {
		return zero, errBig
	}
	full := number{new(big.Int).Mul(x.n, y.n), x.scale + y.scale}
	return full.cut(min(x.scale+y.scale, max(scale, x.scale, y.scale))), nil
}

func div(x, y number, scale int) (number, error) {
	if y.sign() == 0 {
		return zero, errDivide
	}
	// x/y at scale: x.n * 10^(scale + y.scale - x.scale) / y.n
	n := x.n
	if shift := scale + y.scale - x.scale; shift >= 0 {
		n = new(big.Int).Mul(n, pow10(shift))
		return number{n.Quo(n, y.n), scale}, nil
	} else {
		d := new(big.Int).Mul(y.n, pow10(-shift))
		return number{new(big.Int).Quo(n, d), scale}, nil
	}
}

// mod is x - (x/y at scale)*y, with the scale that bc gives it.
func mod(x, y number, scale int) (number, error) {
	q, err := div(x, y, scale)
	if err != nil {
		return zero, errModulo
	}
	s := max(scale+y.scale, x.scale)
	product := number{new(big.Int).Mul(q.n, y.n), q.scale + y.scale}
	r := add(x, product.neg())
	return number{r.to(s), s}, nil
}

func power(x, y number, scale int) (number, error) {
	e := y.to(0)
	if !e.IsInt64() {
		return zero, errBig
	}
	n := e.Int64()
	negative := n < 0
	if negative {
		n = -n
	}
	if x.n.BitLen() > 1 && n > maxBits/int64(x.n.BitLen()-1) {
		return zero, errBig
	}
	if places := int64(x.scale) * n; n > 0 && (places/n != int64(x.scale) || places > maxBits) {
		return tinyPower(x, negative, max(scale, x.scale))
	}
	full := number{new(big.Int).Exp(x.n, big.NewInt(n), nil), x.scale * int(n)}
	if negative {
		return div(integer(1), full, scale)
	}
	return full.cut(min(full.scale, max(scale, x.scale))), nil
}

// tinyPower is a power with so many digits after the point that those which are kept are zeros: the integer behind it is
// within maxBits.
func tinyPower(x number, negative bool, scale int) (number, error) {
	switch {
	case negative && x.sign() == 0:
		return zero, errDivide
	case negative:
		return zero, errBig
	}
	return number{new(big.Int), scale}, nil
}

func sqrt(x number, scale int) (number, error) {
	if x.sign() < 0 {
		return zero, errRoot
	}
	s := max(scale, x.scale)
	return number{new(big.Int).Sqrt(x.to(2 * s)), s}, nil
}

// maxDigits is how long a number may be that is written down: about as long as one that is calculated.
const maxDigits = maxBits / 4

// parse reads digits in a base; letters count from A.
func parse(text string, base int) (number, error) {
	if len(text) > maxDigits {
		return zero, errBig
	}
	whole, behind, _ := strings.Cut(text, ".")
	n := new(big.Int)
	if base == 10 && strings.Trim(whole+behind, "0123456789") == "" {
		n.SetString("0"+whole+behind, 10)
		return number{n, len(behind)}, nil
	}
	digit := func(c byte) int64 {
		if c >= 'A' {
			return int64(c-'A') + 10
		}
		return int64(c - '0')
	}
	single := len(whole)+len(behind) == 1
	add := func(c byte) {
		d := digit(c)
		if !single {
			d = min(d, int64(base-1))
		}
		n.Mul(n, big.NewInt(int64(base)))
		n.Add(n, big.NewInt(d))
	}
	for i := range len(whole) {
		add(whole[i])
	}
	for i := range len(behind) {
		add(behind[i])
	}
	if base == 10 {
		return number{n, len(behind)}, nil
	}
	x := number{new(big.Int).Mul(n, pow10(len(behind))), 0}
	x.n.Quo(x.n, new(big.Int).Exp(big.NewInt(int64(base)), big.NewInt(int64(len(behind))), nil))
	return number{x.n, len(behind)}, nil
}

// String writes the number in decimal as bc does: without a zero before the point.
func (x number) String() string {
	text := new(big.Int).Abs(x.n).String()
	if x.scale > 0 {
		if len(text) <= x.scale {
			text = strings.Repeat("0", x.scale-len(text)) + text
			text = "." + text
		} else {
			text = text[:len(text)-x.scale] + "." + text[len(text)-x.scale:]
		}
	}
	if x.sign() == 0 {
		return "0"
	}
	if x.sign() < 0 {
		return "-" + text
	}
	return text
}

const digits = "0123456789ABCDEF"

// format writes the number in a base; above 16, digits are numbers with spaces between them.
func (x number) format(base int) string {
	if base == 10 {
		return x.String()
	}
	sign := ""
	if x.sign() < 0 {
		sign = "-"
	}
	a := number{new(big.Int).Abs(x.n), x.scale}
	whole := a.to(0)
	width := len(big.NewInt(int64(base - 1)).String())
	one := func(d int64) string {
		if base <= 16 {
			return digits[d : d+1]
		}
		text := big.NewInt(d).String()
		return " " + strings.Repeat("0", width-len(text)) + text
	}
	var out []string
	b := big.NewInt(int64(base))
	for w := new(big.Int).Set(whole); w.Sign() > 0; {
		r := new(big.Int)
		w.QuoRem(w, b, r)
		out = append(out, one(r.Int64()))
	}
	var text strings.Builder
	text.WriteString(sign)
	for i := len(out) - 1; i >= 0; i-- {
		text.WriteString(out[i])
	}
	if x.scale > 0 {
		fraction := new(big.Int).Sub(a.n, new(big.Int).Mul(whole, pow10(a.scale)))
		unit := pow10(a.scale)
		text.WriteByte('.')
		for t := big.NewInt(1); t.Cmp(unit) < 0; t.Mul(t, b) {
			fraction.Mul(fraction, b)
			d := new(big.Int)
			d.QuoRem(fraction, unit, fraction)
			text.WriteString(one(d.Int64()))
		}
	}
	if s := text.String(); s != sign {
		return s
	}
	return "0"
}
