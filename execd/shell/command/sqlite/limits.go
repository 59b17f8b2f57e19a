package sqlite

const (
	// maxHeap is the memory that SQLite may use for itself, which is counted from the start: its cache of pages takes two
	// megabytes, a value several times its size.
	maxHeap = 32 << 20

	// maxValue is the length of a string or a blob, and of a row: functions on them cannot be stopped.
	maxValue = 8 << 20

	// maxSQL is the length of a statement.
	maxSQL = 8 << 20

	// maxColumns is how many fields of a record are looked at: no table has more.
	maxColumns = 32767

	// maxDepth is how deep .read may be nested.
	maxDepth = 25

	// maxArguments is how many arguments a function may get.
	maxArguments = 127

	// pulseSteps is what a thousand steps of SQLite's machine count, in steps of ours.
	pulseSteps = 20
)
