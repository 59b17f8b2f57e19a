// Package fuzz tests whole subsystems: a store, mounted, under real work, crashes, a full disk and many processes; and
// served to mirrors over a bad network. It has nothing but tests. What decodes bytes from another machine is fuzzed in
// its folder wire.
//
// # Processes
//
// The test binary is every process of a test. It starts itself again as the daemon, which opens a store and serves the
// mount, and as workers, which do the work in it; a program such as git is started by a worker that becomes it. The
// test itself only starts, kills and compares. So the process that serves a mount never uses it, and no process is
// forked with a working directory in a mount.
//
//	test ──► daemon: opens the store, mounts, says "ready", answers check, audit and stop; SIGTERM is a clean stop
//	     ├─► worker: changes to the mount, does one named job, says what it found
//	     └─► worker: changes to the mount, becomes git, npm, rsync, ...
//
// Of a workspace that was joined there are two daemons: the authority, which serves its store on a socket, and the mirror, which
// mounts and reaches it by a link that it cuts and mends when it is told to.
//
// A daemon ends when its standard input does, so it does not outlive its test.
//
// # What is needed
//
// Root, /dev/fuse, TUN devices, git, npm with its registry, sqlite3, rsync, tar and go. What is missing fails the test that
// needs it.
//
// # Environment
//
//	VFSTEST_SEED        the seed of everything that is random; a failure prints it
//	CARREL_ROUNDS       rounds of TestCrash (30)
//	CARREL_OUTAGES      how often TestJoinedOutages kills or cuts something (4)
//	CARREL_OUTAGE_MS    how long it lets things go on before and after, at the most, in milliseconds (100)
//	CARREL_BUILD        packages that TestGoBuild builds (./fusefs); ./... is much more
//	CARREL_COPY_MIB     what is copied beside TestFsyncBesideCopy, in MiB (512)
//	CARREL_SECONDS      how long the processes of TestSameNames fight (5)
//	CARREL_ENTRIES      entries of TestLargeDirectory (50000)
//	CARREL_INSERT_MIB   size of the file of TestInsertedByte, in MiB (64)
//	CARREL_CHURN_MIB    what TestChurn writes, in MiB (640; 20480 are what it is for, and take minutes)
//	CARREL_MILLION      files of TestMillion (20000; a million is what it is for, and takes minutes)
//	CARREL_RACE         when set, with -race, daemons and workers have the race detector too: ten times slower
//	CARREL_VERBOSE      when set, daemons pass on all that they log
package fuzz
