package basic

import (
	"context"
	"math/big"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// maxFactorBits bounds the numbers that are factored: a hard one of this size takes Pollard's method some seconds, which
// are counted.
const maxFactorBits = 128

var factorOptions = getopt.New("")

func factor(ctx context.Context, c *tool.Call) error {
	_, args, err := c.Options(factorOptions, 1)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		for _, arg := range args {
			if err := factorOne(ctx, c, arg); err != nil {
				return err
			}
		}
		return nil
	}
	lines := c.Lines(c.Standard(ctx))
	for line, ok := lines.Next(); ok; line, ok = lines.Next() {
		for _, word := range strings.Fields(string(line)) {
			if err := factorOne(ctx, c, word); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

func factorOne(ctx context.Context, c *tool.Call, text string) error {
	if err := c.Step(ctx, 100); err != nil {
		return err
	}
	if len(text) > maxFactorBits { // as long in bits at least
		c.Fault("'%.20s...' is too large", text)
		return nil
	}
	n, ok := new(big.Int).SetString(strings.TrimPrefix(text, "+"), 10)
	if !ok || n.Sign() < 0 {
		c.Fault("'%s' is not a valid positive integer", text)
		return nil
	}
	if n.BitLen() > maxFactorBits {
		c.Fault("'%s' is too large", text)
		return nil
	}
	var primes []*big.Int
	step := func() error { return c.Step(ctx, 256) }
	if err := split(n, &primes, step); err != nil {
		return err
	}
	slices.SortFunc(primes, (*big.Int).Cmp)
	_, _ = c.Out.WriteString(n.String() + ":")
	for _, p := range primes {
		_, _ = c.Out.WriteString(" " + p.String())
	}
	return c.Out.WriteByte('\n')
}

// split appends the prime factors of n.
func split(n *big.Int, primes *[]*big.Int, step func() error) error {
	n = new(big.Int).Set(n)
	for p := int64(2); p < 1000 && n.Cmp(big.NewInt(1)) > 0; p++ {
		d := big.NewInt(p)
		for q, r := new(big.Int).QuoRem(n, d, new(big.Int)); r.Sign() == 0 && n.Sign() > 0; q, r = new(big.Int).QuoRem(n, d, new(big.Int)) {
			*primes, n = append(*primes, d), q
		}
	}
	if n.Cmp(big.NewInt(1)) <= 0 {
		return nil
	}
	if n.ProbablyPrime(20) {
		*primes = append(*primes, n)
		return nil
	}
	d, err := rho(n, step)
	if err != nil {
		return err
	}
	if err := split(d, primes, step); err != nil {
		return err
	}
	return split(new(big.Int).Quo(n, d), primes, step)
}

// rho is Pollard's method: it finds a divisor of a composite.
func rho(n *big.Int, step func() error) (*big.Int, error) {
	one := big.NewInt(1)
	for c := int64(1); ; c++ {
		next := func(x *big.Int) {
			x.Mul(x, x)
			x.Add(x, big.NewInt(c))
			x.Mod(x, n)
		}
		x, y, d := big.NewInt(2), big.NewInt(2), big.NewInt(1)
		for i := 0; d.Cmp(one) == 0; i++ {
			if i%256 == 255 {
				if err := step(); err != nil {
					return nil, err
				}
			}
			next(x)
			next(y)
			next(y)
			d.GCD(nil, nil, n, new(big.Int).Abs(new(big.Int).Sub(x, y)))
		}
		if d.Cmp(n) != 0 {
			return d, nil
		}
	}
}
