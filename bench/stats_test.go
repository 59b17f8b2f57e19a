package bench

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func near(a, b, by float64) bool { return math.Abs(a-b) <= by }

func TestQuantile(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		q      float64
		want   float64
	}{
		{[]float64{7}, 0.95, 7},
		{[]float64{1, 2}, 0.5, 1.5},
		{[]float64{1, 2, 3}, 0.5, 2},
		{[]float64{1, 2, 3, 4, 5}, 0.25, 2},
		{[]float64{1, 2, 3, 4, 5}, 0.95, 4.8},
		{[]float64{1, 2, 3, 4, 5}, 1, 5},
		{[]float64{1, 2, 3, 4, 5}, 0, 1},
	} {
		if got := quantile(tt.values, tt.q); !near(got, tt.want, 1e-12) {
			t.Errorf("quantile(%v, %v) = %v, want %v", tt.values, tt.q, got, tt.want)
		}
	}
	if !math.IsNaN(quantile(nil, 0.5)) {
		t.Error("nothing has a median")
	}
}

func TestSummary(t *testing.T) {
	values := []float64{30, 10, 20, 50, 40}
	got := summarise(values)
	if want := (Summary{Median: 30, Min: 10, P95: 48, Spread: 20.0 / 30}); got != want {
		t.Errorf("summary %+v, want %+v", got, want)
	}
	if values[0] != 30 {
		t.Error("the samples were put in another order")
	}
}

// The interval holds the true ratio about as often as it says, and is narrow when nothing varies.
func TestRatio(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	held, runs := 0, 200
	for range runs {
		a, b := make([]float64, 15), make([]float64, 15)
		for i := range a {
			round := 1 + 0.3*rng.Float64() // slows both down
			a[i], b[i] = 300*round*(1+0.1*rng.NormFloat64()), 100*round*(1+0.1*rng.NormFloat64())
		}
		value, low, high := ratio(a, b, rng.Uint64())
		if low > value || value > high {
			t.Fatalf("%v is outside of %v to %v", value, low, high)
		}
		if low <= 3 && 3 <= high {
			held++
		}
	}
	if held < runs*85/100 {
		t.Errorf("an interval of 95 %% held the ratio in %d of %d runs", held, runs)
	}
	if value, low, high := ratio([]float64{6, 6, 6}, []float64{2, 2, 2}, 1); value != 3 || low != 3 || high != 3 {
		t.Errorf("ratio of what does not vary: %v, %v to %v", value, low, high)
	}
	a, b := []float64{5, 7, 9, 4}, []float64{1, 2, 3, 4}
	_, low1, high1 := ratio(a, b, 9)
	_, low2, high2 := ratio(a, b, 9)
	if low1 != low2 || high1 != high2 {
		t.Error("the same report has two intervals")
	}
}

func TestMannWhitney(t *testing.T) {
	for _, tt := range []struct {
		a, b []float64
		want float64
	}{
		{[]float64{1, 2, 3}, []float64{4, 5, 6}, 0.1},
		{[]float64{4, 5, 6}, []float64{1, 2, 3}, 0.1},
		{[]float64{1, 2, 3, 4, 5}, []float64{6, 7, 8, 9, 10}, 2.0 / 252},
		{[]float64{1, 4}, []float64{2, 3}, 1},
		{[]float64{2, 2, 2}, []float64{2, 2, 2}, 1},
		{nil, []float64{1}, 1},
		// By hand: U = 13, its mean 8, its variance 16/12*(9-48/56).
		{[]float64{2, 3, 3, 4}, []float64{1, 2, 2, 3}, math.Erfc(4.5 / math.Sqrt(16.0/12*(9-48.0/56)) / math.Sqrt2)},
	} {
		if got := mannWhitney(tt.a, tt.b); !near(got, tt.want, 1e-9) {
			t.Errorf("mannWhitney(%v, %v) = %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

// The exact distribution is that of going through all orders.
func TestMannWhitneyExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, m := rapid.IntRange(1, 6).Draw(t, "n"), rapid.IntRange(1, 6).Draw(t, "m")
		order := rapid.Permutation(ranks(n+m)).Draw(t, "order")
		a, b := order[:n], order[n:]
		u, _ := rankSum(a, b)
		extreme, total := 0, 0
		for set := range 1 << (n + m) {
			var x, y []float64
			for i := range n + m {
				if set>>i&1 == 1 {
					x = append(x, float64(i))
				} else {
					y = append(y, float64(i))
				}
			}
			if len(x) != n {
				continue
			}
			total++
			v, _ := rankSum(x, y)
			if math.Abs(v-float64(n*m)/2) >= math.Abs(u-float64(n*m)/2) {
				extreme++
			}
		}
		if got, want := mannWhitney(a, b), float64(extreme)/float64(total); !near(got, want, 1e-9) {
			t.Fatalf("mannWhitney(%v, %v) = %v, want %v", a, b, got, want)
		}
	})
}

func ranks(n int) []float64 {
	r := make([]float64, n)
	for i := range r {
		r[i] = float64(i)
	}
	return r
}

// Where the approximation takes over from the exact distribution, the two agree.
func TestMannWhitneyApproximation(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		a, b := make([]float64, maxExact), make([]float64, maxExact)
		for i := range a {
			a[i], b[i] = rng.Float64(), rng.Float64()+0.2
		}
		precise := mannWhitney(a, b)
		a = append(a, 0.5) // one more than is counted exactly
		if rough := mannWhitney(a, b); !near(precise, rough, 0.05) {
			t.Errorf("%v exactly, %v approximately", precise, rough)
		}
	}
}
