package regex

const (
	// maxRepeat is the largest count in {m,n}: RE_DUP_MAX of glibc.
	maxRepeat = 32767

	// maxDepth is how deep groups may be nested: the parser and the machine recurse.
	maxDepth = 250

	// maxNesting is how deep the backtracking machine recurses before it gives up: a frame takes a few hundred bytes, so
	// this is some tens of megabytes at worst.
	maxNesting = 100_000

	// stepBatch is how many steps of the backtracking machine pass between two calls of Options.Step.
	stepBatch = 1 << 12

	// maxSteps is how many steps one search may take on the backtracking machine when nobody counts them.
	maxSteps = 1 << 31
)
