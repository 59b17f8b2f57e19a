package worker

const (
	// MaxMessage bounds a message between a worker and the daemon: what a module reads or writes at once is one.
	MaxMessage = 40 << 20
	// MaxFile is the largest file that is read or written as a whole.
	MaxFile = 32 << 20
	// MaxValue is the largest result value, in JSON.
	MaxValue = 4 << 20
	// DefaultMemory is what a module may use unless its spec says otherwise. Enough to parse a large file, and 200 at once
	// fit a server.
	DefaultMemory = 256 << 20
	// MinMemory is what the runtime itself needs, and some.
	MinMemory = 8 << 20
	// MaxMemory is the most that a module may use.
	MaxMemory = 4 << 30
	// overhead is what the worker uses of the address space beside the module's memory: the Go runtime reserves much of it
	// and uses little.
	overhead = 4 << 30
	// maxTimers is how many timers may be set at once.
	maxTimers = 10_000
	// maxImmediates is how many calls may be due at once.
	maxImmediates = 1_000_000
	// maxModules is how many modules one run imports.
	maxModules = 2000
)
