package vfstest

const (
	// hashBlock is the unit that Snapshot reads files in, in bytes: large enough that a read of a store is cheap.
	hashBlock = 64 << 10

	// maxFullRead is the largest file that Snapshot reads whole, in bytes. It takes the word of Seek for what is a hole
	// in a larger one.
	maxFullRead = 8 << 20

	// randomCompareEvery is the number of steps of Random between two comparisons of everything, which cost as much as
	// some hundred steps.
	randomCompareEvery = 250

	// randomLog is how many steps the report of a difference shows.
	randomLog = 40

	// randomGone is how many inodes that are gone Random goes on to use, to see that they stay so.
	randomGone = 3

	// randomDirs is how many directories Random makes: few, so that names meet.
	randomDirs = 12
)
