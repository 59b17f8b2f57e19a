package bench

import (
	"math"
	"math/rand/v2"
	"slices"
)

// quantile returns the q-quantile of sorted values, between neighbours by their distance (type 7 of Hyndman and Fan,
// 1996). NaN when there are none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := q * float64(len(sorted)-1)
	below := int(at)
	if below+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[below] + (at-float64(below))*(sorted[below+1]-sorted[below])
}

func sorted(values []float64) []float64 {
	s := slices.Clone(values)
	slices.Sort(s)
	return s
}

func median(values []float64) float64 { return quantile(sorted(values), 0.5) }

// spread returns the distance of the quartiles as a share of the median: how noisy values are, whatever their size.
func spread(values []float64) float64 {
	s := sorted(values)
	m := quantile(s, 0.5)
	if !(m > 0) {
		return 0
	}
	return (quantile(s, 0.75) - quantile(s, 0.25)) / m
}

// Summary describes the times of a cell, in nanoseconds.
type Summary struct {
	Median float64 `json:"median_ns"`
	Min    float64 `json:"min_ns"`
	P95    float64 `json:"p95_ns"`
	Spread float64 `json:"spread"` // the distance of the quartiles, as a share of the median
}

func summarise(values []float64) Summary {
	s := sorted(values)
	return Summary{Median: quantile(s, 0.5), Min: s[0], P95: quantile(s, 0.95), Spread: spread(s)}
}

// ratio returns the ratio of the medians of a and b, and an interval in which it lies with a probability of 95 %, by
// resampling the rounds (percentile bootstrap, Efron 1979). a[i] and b[i] are of the same round, so they are drawn
// together: what slows a whole round down slows both. The values are positive and there are as many of a as of b.
func ratio(a, b []float64, seed uint64) (value, low, high float64) {
	rng := rand.New(rand.NewPCG(seed, 0x6361727265)) // the same report gives the same interval
	ratios := make([]float64, resamples)
	x, y := make([]float64, len(a)), make([]float64, len(b))
	for i := range ratios {
		for j := range x {
			k := rng.IntN(len(a))
			x[j], y[j] = a[k], b[k]
		}
		slices.Sort(x)
		slices.Sort(y)
		ratios[i] = quantile(x, 0.5) / quantile(y, 0.5)
	}
	slices.Sort(ratios)
	return median(a) / median(b), quantile(ratios, 0.025), quantile(ratios, 0.975)
}
