package reconcile_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/reconcile"
)

func TestMergeLines(t *testing.T) {
	const clash = "clash"
	for _, c := range []struct{ name, base, mine, theirs, want string }{
		{"nothing", "a b c", "a b c", "a b c", "a b c"},
		{"mine", "a b c", "a x c", "a b c", "a x c"},
		{"theirs", "a b c", "a b c", "a x c", "a x c"},
		{"different lines", "a b c d e", "x b c d e", "a b c d y", "x b c d y"},
		{"the same line", "a b c", "a x c", "a y c", clash},
		{"the same line in the same way", "a b c", "a x c", "a x c", "a x c"},
		{"lines side by side", "a b c d", "a x c d", "a b y d", clash},
		{"insertions at one place", "a b", "a x b", "a y b", clash},
		{"the same insertion", "a b", "a x b", "a x b", "a x b"},
		{"insertions apart", "a b c", "x a b c", "a b c y", "x a b c y"},
		{"one removes, one changes elsewhere", "a b c d e", "a c d e", "a b c d x", "a c d x"},
		{"one removes what one changes", "a b c", "a c", "a x c", clash},
		{"both remove", "a b c", "a c", "a c", "a c"},
		{"a large change over a small one", "a b c d e", "x", "a b y d e", clash},
		{"from nothing", "", "a", "", "a"},
		{"from nothing on both", "", "a", "b", clash},
		{"to nothing", "a b c", "", "a b c", ""},
		{"several", "a b c d e f g h i", "a X c d e f g H i", "a b c d E f g h i", "a X c d E f g H i"},
		{"one side in two places around the other", "a b c d e", "a X c Y e", "a b Z d e", clash},
	} {
		text := func(s string) []byte {
			if s == "" {
				return nil
			}
			return []byte(strings.ReplaceAll(s, " ", "\n") + "\n")
		}
		got, ok := reconcile.MergeLines(text(c.base), text(c.mine), text(c.theirs))
		shown := strings.TrimSpace(strings.ReplaceAll(string(got), "\n", " "))
		if !ok {
			shown = clash
		}
		if shown != c.want {
			t.Errorf("%s: %q, want %q", c.name, shown, c.want)
		}
	}
	if got, ok := reconcile.MergeLines([]byte("a\nb\nc"), []byte("a\nb\nc\n"), []byte("x\nb\nc")); !ok || string(got) != "x\nb\nc\n" {
		t.Errorf("an end of line: %q, %v", got, ok)
	}
}

// TestMergeLinesRandom changes lines that are apart on two sides: both changes are in the result, whoever is mine.
func TestMergeLinesRandom(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		base := make([]string, 1+rng.IntN(60))
		for i := range base {
			base[i] = fmt.Sprintf("%d\n", rng.IntN(9)) // many lines are the same
		}
		sides, want := [2][]string{slices.Clone(base), slices.Clone(base)}, slices.Clone(base)
		for at := rng.IntN(3); at < len(base); at += 2 + rng.IntN(4) {
			line := ""
			switch rng.IntN(3) {
			case 0:
				line = fmt.Sprintf("new %d\n", at)
			case 1:
				line = base[at] + fmt.Sprintf("more %d\n", at)
			}
			sides[rng.IntN(2)][at], want[at] = line, line
		}
		texts := [3][]byte{[]byte(strings.Join(base, "")), []byte(strings.Join(sides[0], "")), []byte(strings.Join(sides[1], ""))}
		one, ok1 := reconcile.MergeLines(texts[0], texts[1], texts[2])
		two, ok2 := reconcile.MergeLines(texts[0], texts[2], texts[1])
		if ok1 != ok2 || string(one) != string(two) {
			t.Fatalf("seed %d: it is not the same from both sides", seed)
		}
		if ok1 && len(one) != len(strings.Join(want, "")) {
			t.Fatalf("seed %d: %d bytes, want %d", seed, len(one), len(strings.Join(want, "")))
		}
	}
}
