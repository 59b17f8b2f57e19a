package calc

import (
	"errors"
	"strings"
	"testing"
)

func TestPower(t *testing.T) {
	read := func(text string) number {
		x, err := parse(strings.TrimPrefix(text, "-"), 10)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(text, "-") {
			x = x.neg()
		}
		return x
	}
	for _, tt := range []struct {
		x, y  string
		scale int
		want  string
		err   error
	}{
		{"2", "10", 0, "1024", nil}, {"1.5", "2", 5, "2.25", nil}, {"0.1", "3", 2, ".00", nil}, {"2", "-2", 4, ".2500", nil},
		{"0.1", "100000000", 0, "0", nil}, {"0.1", "9223372036854775807", 20, "0", nil}, {"-0.1", "100000001", 5, "0", nil},
		{"0.1", "-100000000", 0, "", errBig}, {"0.0", "-100000000", 0, "", errDivide}, {"1.0", "262145", 3, "", errBig},
		{"3", "1000000", 0, "", errBig}, {"1", "1000000000000", 0, "1", nil},
	} {
		got, err := power(read(tt.x), read(tt.y), tt.scale)
		if !errors.Is(err, tt.err) || err == nil && got.String() != tt.want && strings.Trim(got.String(), "0.") != strings.Trim(tt.want, "0.") {
			t.Errorf("%s^%s: %v, %v", tt.x, tt.y, got, err)
		}
	}
	if _, err := parse(strings.Repeat("9", maxDigits+1), 10); !errors.Is(err, errBig) {
		t.Error(err)
	}
}
