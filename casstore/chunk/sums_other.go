//go:build !amd64

package chunk

const twoAtOnce = false

func compress2(_, _ *state, _, _ *byte, _ int) { panic("compress2 is for processors that have it") }
