package serving

import "time"

const (
	// drainPatience is how long sessions that were told to go may take. A push that is under way is over by then, and one
	// that is not is made again under its id elsewhere.
	drainPatience = 5 * time.Second

	// sampleEvery is how often it is noted at which revision workspaces are: the lag of peers in seconds is exact to that. A
	// client whose key is taken out of the file of client keys is shut out as fast.
	sampleEvery = time.Second

	// maxMarks is how many moments of a workspace are remembered. When there are more, every other one is forgotten: the
	// lag of a peer that is far behind becomes less exact, and stays as long.
	maxMarks = 1024

	// maxCounted is how many revisions of the store are looked at to tell by how many of its workspace a peer is behind. Who
	// is behind by more is behind by far; and a scrape must not read a log of a million for each.
	maxCounted = 10_000

	// idleWorkspace is how long a workspace stays open without a session. A client that connects again finds it open;
	// then it can be removed.
	idleWorkspace = time.Minute

	// portTries is how often a port that the kernel has chosen for UDP is tried for TCP, where another program may have it.
	portTries = 16

	// healthPatience is how long the store may take to answer before it does not count as healthy.
	healthPatience = 5 * time.Second

	// lookPatience is how long a workspace may take to say where it is. One that is served for the first time sums up all
	// its records before it does; what is known of the others must not wait for that.
	lookPatience = 2 * time.Second

	// altSvcAge is for how long a client may remember that the API is served by HTTP/3, too.
	altSvcAge = time.Hour

	// scrapeTimeout is how long one who asks for metrics may take to ask, and to read the answer.
	scrapeTimeout = 10 * time.Second

	// maxSocketPath is the longest path that fits a sockaddr_un with its NUL (unix(7)).
	maxSocketPath = 107
)
