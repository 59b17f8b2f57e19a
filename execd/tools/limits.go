package tools

import "time"

const (
	// MaxRead is how many bytes of text or base64 one read returns: some ten thousand tokens.
	MaxRead = 48 << 10
	// MaxReadLines is how many lines one read returns unless it asks for fewer.
	MaxReadLines = 2000
	// MaxImage is the largest image that is returned as one: what models take.
	MaxImage = 5 << 20
	// MaxEdit is the largest file that is edited, and that is compared line by line. An edit holds it a few times over.
	MaxEdit = 8 << 20
	// MaxEdits is how many places one edit changes.
	MaxEdits = 200
	// MaxWrite is the largest file that one write makes.
	MaxWrite = 8 << 20
	// MaxDiff is how many bytes of a comparison are returned.
	MaxDiff = 32 << 10

	// MaxEntries is how many entries ls and find return at most, DefaultEntries when they are not told.
	MaxEntries, DefaultEntries = 1000, 200
	// MaxMatches is how many matching lines grep returns at most, DefaultMatches when it is not told.
	MaxMatches, DefaultMatches = 500, 100
	// MaxContext is how many lines around a match are returned.
	MaxContext = 10
	// MaxLine is how many bytes of a line grep returns.
	MaxLine = 400
	// MaxFound bounds the bytes of the lines or paths of one result.
	MaxFound = 32 << 10
	// MaxChanged is how many files one comparison names.
	MaxChanged = 500

	// maxVisits is how many nodes one call looks at before it answers with what it has and how to go on.
	maxVisits = 200_000
	// maxScan is how many bytes one grep looks at before it does.
	maxScan = 512 << 20
	// scanBuffer is how many bytes are read from a file at once.
	scanBuffer = 256 << 10
	// sniffed is how many bytes at its beginning tell whether a file is text: as many as git looks at.
	sniffed = 8000

	// MaxOutput is how many bytes of an exec's output one result has: the beginning and the end of it.
	MaxOutput = 32 << 10
	// outputHead is how many of them are the beginning. Errors are more often at the end.
	outputHead = 8 << 10
	// DefaultWait is how long exec waits before it answers that the exec goes on, MaxWait the longest that it does. A client
	// gives up on a call that takes much longer.
	DefaultWait, MaxWait = 60 * time.Second, 10 * time.Minute
	// DefaultTimeout is when an exec is killed that was not given a time.
	DefaultTimeout = 30 * time.Minute
	// MaxInput bounds standard input, structured input and the text of a program.
	MaxInput = 1 << 20
)
