package bench

import "testing"

func TestUnits(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{duration(0), "0 ns"},
		{duration(999), "999 ns"},
		{duration(999.7), "1 µs"},
		{duration(1234), "1.23 µs"},
		{duration(12_345_678), "12.3 ms"},
		{duration(1.5e9), "1.50 s"},
		{duration(123e9), "123 s"},
		{durations(1.5e6, 0.9e6, 20e6), "1.50 ms (0.90–20)"},
		{size(0), "0 B"},
		{size(1023), "1023 B"},
		{size(1 << 20), "1 MiB"},
		{size(1<<20 - 1), "1 MiB"},
		{size(3 << 29), "1.50 GiB"},
		{size(5 << 40), "5 TiB"},
		{count(999), "999"},
		{count(1000), "1k"},
		{count(1500), "1500"},
		{count(2_000_000), "2M"},
		{factor(0.123), "0.12"},
		{factor(123.45), "123.5"},
		{bar(0), "▏"},
		{bar(1), "██"},
		{bar(1.25), "██▌"},
		{bar(100), "███████████████████▶"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}
