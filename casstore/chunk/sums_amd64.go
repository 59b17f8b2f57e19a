package chunk

import "github.com/klauspost/cpuid/v2"

var twoAtOnce = cpuid.CPU.Supports(cpuid.SHA, cpuid.SSE4, cpuid.SSSE3)

// compress2 takes blocks of two messages, at least one, into their states. It is correct where twoAtOnce is true.
//
//go:noescape
func compress2(a, b *state, pa, pb *byte, blocks int)
