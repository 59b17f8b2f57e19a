package bench

import "time"

const (
	// MinRounds is the fewest rounds whose ranks can tell two runs apart: with five against five, the strongest
	// difference has a probability of 1/126 by chance; with four against four, 1/35.
	MinRounds = 5

	// DefaultRounds keeps the reference suite under ten minutes on two cores.
	DefaultRounds = 7

	// startPatience is how long a target may take to come up. A peer may have to start a container.
	startPatience = 60 * time.Second
	// startRetry is how often it is looked at meanwhile.
	startRetry = 10 * time.Millisecond
	// stopPatience is how long a target may take to end in order, which includes writing what is dirty to the disk.
	stopPatience = 2 * time.Minute
	// killPatience is how long a process is waited for that was killed. One that waits for a hung mount does not die
	// before the mount's connection is cut, which is what happens next.
	killPatience = 5 * time.Second

	// runPatience ends a run that hangs. The slowest row that anybody has reported takes two minutes.
	runPatience = 30 * time.Minute

	// maxOutput is how much of a script's output is read, in bytes: steps print a line, fio some kilobytes.
	maxOutput = 1 << 20
	// maxComplaint is how much of its stderr goes into an error, in bytes.
	maxComplaint = 2 << 10

	// resamples of a bootstrap. More do not move the interval by a hundredth of its width.
	resamples = 2000

	// noisySpread is the quartile distance of a cell's times, as a share of their median, from which the cell is
	// marked as noisy. A quiet machine gives 0.02 to 0.1.
	noisySpread = 0.25
	// noisyPace is the same for the pacer, whose work never varies.
	noisyPace = 0.15
	// noisyOthers is the share of the machine's CPU time, used by processes that are not ours, from which a whole
	// report is marked.
	noisyOthers = 0.15

	// significant is the probability below which a difference is not called chance, and minChange the least change
	// that is worth a word. Of a hundred rows that did not change, one is called changed.
	significant = 0.01
	minChange   = 0.05

	// maxExact is how many samples both sides may have for the exact distribution of the Mann-Whitney test.
	maxExact = 30

	// maxReport is the longest report that is read, in bytes. A full one has some hundred kilobytes.
	maxReport = 64 << 20
)
