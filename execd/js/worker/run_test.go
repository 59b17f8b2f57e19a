package worker

import (
	"errors"
	"testing"

	"modernc.org/quickjs"
)

// The wrapper stops after a million promises of a turn, which is no error of the module.
func TestIsMore(t *testing.T) {
	for _, tt := range []struct {
		n    int
		err  error
		want bool
	}{
		{1 << 20, errors.New("aborted draining"), true},
		{3, &quickjs.Error{Name: "InternalError"}, false},
		{0, errors.New("OOM"), false},
	} {
		if got := isMore(tt.n, tt.err); got != tt.want {
			t.Errorf("%d, %v: %v", tt.n, tt.err, got)
		}
	}
}
