package execd

import "time"

const (
	// DefaultLogSize is how many bytes of a log are kept: enough for what people look at, and small beside a workspace.
	DefaultLogSize = 16 << 20
	// logSegments is into how many files a log is cut: what falls out is one of them.
	logSegments = 16
	// headSegments is how many of them hold the beginning and never fall out.
	headSegments = 4
	// maxChunk bounds the bytes of one event, and with it what a reader holds in memory.
	maxChunk = 64 << 10
	// maxFrame bounds an event with what is around it in a log: that of an exit holds a Result.
	maxFrame = MaxValue + maxChunk

	// MaxRunning is how many execs run at once unless Config says otherwise. Each has a few descriptors and goroutines.
	MaxRunning = 256
	// MaxKept is how many execs that have ended are kept. With more the oldest are forgotten early.
	MaxKept = 1000
	// KeepFor is how long an exec is kept after its end, for who lost the connection.
	KeepFor = time.Hour
	// sweepEvery is how often those are looked for that have been kept long enough.
	sweepEvery = time.Minute

	// MaxID bounds an id, which is a file name.
	MaxID = 64
	// MaxArgs bounds the bytes of the arguments and the environment: less than what execve(2) takes on any machine.
	MaxArgs = 1 << 20
	// MaxSource bounds a program's text.
	MaxSource = 4 << 20
	// MaxInput bounds what is given at the start as standard input or structured input. More goes through Input.
	MaxInput = 4 << 20
	// MaxFeeds is how many feeds an exec may have in its life: what is known of each is kept to its end.
	MaxFeeds = 64
	// MaxValue bounds a result value.
	MaxValue = 4 << 20
	// MaxTimeout bounds a time limit.
	MaxTimeout = 30 * 24 * time.Hour

	// barrierPatience is how long the barrier after an exec may take before its result says that it did not end.
	barrierPatience = 2 * time.Minute
)
