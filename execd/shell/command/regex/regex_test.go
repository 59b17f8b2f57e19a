package regex_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/execd/shell/command/regex"
)

func TestFindAll(t *testing.T) {
	const b, e, a, p = regex.Basic, regex.Extended, regex.Awk, regex.Perl
	tests := []struct {
		syntax     regex.Syntax
		expr, text string
		want       string // matches in brackets, or an error
	}{
		{b, `a*`, "baaac", "[]b[aaa]c[]"},
		{b, `*a`, "x*a", "x[*a]"},
		{b, `^*a`, "*a", "[*a]"},
		{b, `a\+b\?`, "aab a", "[aab] [a]"},
		{b, `a+`, "aa+", "a[a+]"},
		{b, `\(a\|b\)\1`, "abba aa", "a[bb]a [aa]"},
		{b, `a\{2,3\}`, "aaaaa", "[aaa][aa]"},
		{b, `a^b$c`, "a^b$c", "[a^b$c]"},
		{b, `x\(^a\)`, "xa", "xa"},
		{b, `[]a]`, "]b", "[]]b"},
		{b, `[^]a]`, "]b", "][b]"},
		{b, `[a\]`, `\`, `[\]`},
		{b, `[[:digit:][:upper:]]*z`, "A1z", "[A1z]"},
		{b, `\<foo\>`, "foo food foo", "[foo] food [foo]"},
		{b, `\<`, "ab cd", "[]ab []cd"},
		{b, `\bé`, "é xé", "[é] xé"},
		{b, `[`, "", "Unmatched [, [^, [:, [., or [="},
		{b, `\(`, "", `Unmatched ( or \(`},
		{b, `\)`, "", `Unmatched ) or \)`},
		{b, `a\{1`, "", `Unmatched \{`},
		{b, `a\{2,1\}`, "", `Invalid content of \{\}`},
		{b, `\(a\)\2`, "", "Invalid back reference"},
		{b, `a\`, "", "Trailing backslash"},
		{b, `[b-a]`, "", "Invalid range end"},
		{b, `[[:nope:]]`, "", "Invalid character class name"},
		{e, `a|ab`, "abab", "[ab][ab]"},
		{e, `(a*)(ab)*`, "aab", "[aab]"},
		{e, `()`, "a", "[]a[]"},
		{e, `a{,2}b`, "aaab", "a[aab]"},
		{e, `a{x`, "a{x", "[a{x]"},
		{e, `(.)(.)\2\1`, "xabbay", "x[abba]y"},
		{e, `(^|x)a$`, "xa", "[xa]"},
		{e, `\w+\W\S`, "ab c", "[ab c]"},
		{e, `a{1001}`, strings.Repeat("a", 1001), "[" + strings.Repeat("a", 1001) + "]"},
		{e, `.`, "aé\xff", "[a][é][\xff]"},
		{a, `a\.b\/[\/\]]`, "a.b/]", "[a.b/]]"},
		{a, `\t\x41\102\y`, "\tAB", "[\tAB]"},
		{p, `(?<=a)b+?`, "abb b", "a[b]b b"},
		{p, `a(?!b)`, "ab ac", "ab [a]c"},
		{p, `(?<!\$)\b\d+`, "$1 22", "$1 [22]"},
		{p, `foo=\K\w+`, "foo=bar", "foo=[bar]"},
		{p, `(?i)AB(?-i)c`, "abc abC", "[abc] abC"},
		{p, `(?P<x>.)\k<x>`, "aab", "[aa]b"},
		{p, `a.c`, "a\nc abc", "a\nc [abc]"},
		{p, `\Qa.b\E+`, "a.bbb", "[a.bbb]"},
		{p, `x*+x`, "xx", "xx"},
		{p, `[\w-]+`, "a-b c", "[a-b] [c]"},
		{p, `\p{Lu}\x{e9}`, "Éé", "[Éé]"},
	}
	for _, tt := range tests {
		if got := mark(tt.expr, tt.text, regex.Options{Syntax: tt.syntax}); got != tt.want {
			t.Errorf("%s on %q: %s, want %s", tt.expr, tt.text, got, tt.want)
		}
	}
}

func mark(expr, text string, o regex.Options) string {
	r, err := regex.Compile(expr, o)
	if err != nil {
		return err.Error()
	}
	all, err := r.FindAll([]byte(text), -1)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	at := 0
	for _, loc := range all {
		fmt.Fprintf(&b, "%s[%s]", text[at:loc[0]], text[loc[0]:loc[1]])
		at = loc[1]
	}
	return b.String() + text[at:]
}

func TestOptions(t *testing.T) {
	tests := []struct {
		o                regex.Options
		expr, text, want string
	}{
		{regex.Options{Fold: true}, "aé", "AÉ", "[AÉ]"},
		{regex.Options{Fold: true}, `\(a\)\1`, "aA", "[aA]"},
		{regex.Options{Word: true}, "foo", "food foo", "food [foo]"},
		{regex.Options{Word: true}, "a*", "aab aa", "aab [aa]"},
		{regex.Options{Word: true}, "fo.*", "xfoo foo-b", "xfoo [foo-b]"},
		{regex.Options{Whole: true, Syntax: regex.Extended}, "a|ab", "ab", "[ab]"},
		{regex.Options{Multi: true}, "^.$", "a\nb", "[a]\n[b]"},
		{regex.Options{Escapes: true}, `\n[\n]\x41`, "\n\nA", "[\n\nA]"},
		{regex.Options{}, `\n`, "n", "[n]"},
	}
	for _, tt := range tests {
		if got := mark(tt.expr, tt.text, tt.o); got != tt.want {
			t.Errorf("%s with %+v on %q: %s, want %s", tt.expr, tt.o, tt.text, got, tt.want)
		}
	}
}

// A catastrophic expression, and a long text on the automaton, end when the count says so.
func TestCost(t *testing.T) {
	stop := errors.New("enough")
	for expr, text := range map[string]string{
		`\(\(a*\)*\)*\1b`: "b" + strings.Repeat("a", 40),
		`x.*y.*z`:         strings.Repeat("xy", 1<<20),
		`^x.*y.*z`:        strings.Repeat("xy", 1<<20),
	} {
		left := 100
		r, err := regex.Compile(expr, regex.Options{Step: func(int) error {
			if left--; left < 0 {
				return stop
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.FindAll([]byte(text + "z")[:len(text)], -1); !errors.Is(err, stop) && !strings.Contains(expr, "z") {
			t.Errorf("%s: %v, want it stopped", expr, err)
		}
		if ok, err := r.Match([]byte(text + "z")); !errors.Is(err, stop) && !ok {
			t.Errorf("%s: %v, %v", expr, ok, err)
		}
	}
}

// The matches of a long text, each of which is counted, are those that are found when nobody counts.
func TestFindAllCounted(t *testing.T) {
	text := []byte(strings.Repeat("some words, and more of them; Zeile für Zeile ", 100) + "\nlast")
	for _, expr := range []string{"o", "[a-z]+", "m.", "e*", "(o|or)(d|ds)?", "^some", "$", "\\bmore\\b", "ü", "x", "s.*t", "Z[^ ]+", "(o)(.)|(m)"} {
		for _, syntax := range []regex.Syntax{regex.Extended, regex.Perl} {
			free, err := regex.Compile(expr, regex.Options{Syntax: syntax})
			if err != nil {
				t.Fatal(expr, err)
			}
			steps := 0
			counted := free.Counting(func(n int) error { steps += n; return nil })
			for _, n := range []int{-1, 1, 7} {
				want, _ := free.FindAll(text, n)
				got, err := counted.FindAll(text, n)
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%s, %d: %v, %v, want %v", expr, n, got, err, want)
				}
			}
		}
	}
}

// All matches of one text can take time in the square of its length, and back-references compare long texts: both end when
// the count says so.
func TestCostOfMany(t *testing.T) {
	stop := errors.New("enough")
	for _, expr := range []string{"a|a.*b", `(a*)(a*)\2\1b`} {
		steps := 0
		r, err := regex.Compile(expr, regex.Options{Syntax: regex.Extended, Step: func(n int) error {
			if steps += n; steps > 1<<16 {
				return stop
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.FindAll([]byte("b"+strings.Repeat("a", 20_000)), -1); !errors.Is(err, stop) {
			t.Errorf("%s: %v, want it stopped", expr, err)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{`\(a\)*\1`, `[[:alpha:]]\{2,3\}`, `(?<=x)y|z`, `a**`} {
		f.Add(s, "abcxyz")
	}
	f.Fuzz(func(t *testing.T, expr, text string) {
		for s := regex.Basic; s <= regex.Perl; s++ {
			steps := 0
			r, err := regex.Compile(expr, regex.Options{Syntax: s, Step: func(int) error {
				if steps++; steps > 100 {
					return regex.ErrCost
				}
				return nil
			}})
			if err == nil {
				_, _ = r.FindAll([]byte(text), -1)
			}
		}
	})
}
