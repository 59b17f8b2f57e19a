package bench

import (
	"cmp"
	"math"
	"slices"
)

// mannWhitney returns the probability that two samples of one distribution differ in rank at least as much as a and b
// do, in either direction (Mann and Whitney, 1947). It assumes nothing about the distribution, which for times is
// skewed. Few samples without ties are counted exactly; else the normal approximation is taken, corrected for ties and
// for continuity.
func mannWhitney(a, b []float64) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 1
	}
	u, ties := rankSum(a, b)
	n, m := float64(len(a)), float64(len(b))
	if ties == 0 && len(a) <= maxExact && len(b) <= maxExact {
		return exact(len(a), len(b), int(min(u, n*m-u)))
	}
	total := n + m
	variance := n * m / 12 * (total + 1 - ties/(total*(total-1)))
	if variance <= 0 {
		return 1 // all values are equal
	}
	z := max(0, math.Abs(u-n*m/2)-0.5) / math.Sqrt(variance)
	return math.Erfc(z / math.Sqrt2)
}

// rankSum returns in how many pairs the value of a is the larger, half a pair for equal ones, and the sum of t³-t over
// the groups of t equal values.
func rankSum(a, b []float64) (u, ties float64) {
	type value struct {
		v     float64
		fromA bool
	}
	all := make([]value, 0, len(a)+len(b))
	for _, v := range a {
		all = append(all, value{v, true})
	}
	for _, v := range b {
		all = append(all, value{v, false})
	}
	slices.SortFunc(all, func(x, y value) int { return cmp.Compare(x.v, y.v) })
	ranks := 0.0
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j].v == all[i].v {
			j++
		}
		t := float64(j - i)
		ties += t*t*t - t
		for ; i < j; i++ {
			if all[i].fromA {
				ranks += float64(j) - (t-1)/2 // the mean rank of the group, from 1
			}
		}
	}
	n := float64(len(a))
	return ranks - n*(n+1)/2, ties
}

// exact returns the probability of a U of at most u or at least n·m-u, u being in the lower half. The number of
// orders with a given U follows from which sample the largest value is of: c(n,m,u) = c(n-1,m,u-m) + c(n,m-1,u).
func exact(n, m, u int) float64 {
	counts := make([][]float64, m+1) // for the current n: by m, by u
	for j := range counts {
		counts[j] = []float64{1} // n = 0: one order, U = 0
	}
	for i := 1; i <= n; i++ {
		next := make([][]float64, m+1)
		next[0] = []float64{1}
		for j := 1; j <= m; j++ {
			next[j] = make([]float64, i*j+1)
			for k, c := range counts[j] {
				next[j][k+j] += c
			}
			for k, c := range next[j-1] {
				next[j][k] += c
			}
		}
		counts = next
	}
	below, total := 0.0, 0.0
	for k, c := range counts[m] {
		total += c
		if k <= u {
			below += c
		}
	}
	return min(1, 2*below/total)
}
