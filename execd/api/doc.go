// Package api serves execs and files to other programs: on the control socket, where whoever can connect may do
// everything, and wherever else a token decides.
//
//	/carrel.v1.ExecService/…       Connect, gRPC-Web and gRPC (carrel/v1/exec.proto); curl with JSON works too
//	/carrel.v1.FilesService/…      the same for files (carrel/v1/files.proto): stat, list, read, write, remove, find, grep, diff, watch
//	/c/WS/file/PATH                GET, HEAD with ranges; PUT a whole file; DELETE; GET of a directory lists it, in JSON
//	/c/WS/find?glob=…              paths in JSON, /c/WS/grep?pattern=… lines: the arguments and results of execd/tools, in pages
//	/c/WS/watch?path=…             what changes, whoever changes it (server-sent events), from Last-Event-ID, a revision, on
//	/c/WS/exec                     POST a spec in JSON, or with ?arg=…; the answer is the result with its output, in JSON
//	/c/WS/exec/ID/events           the events of an exec for browsers (server-sent events), from Last-Event-ID on
//
// The generated code in carrel/v1 is made by
//
//	go generate ./execd/api
//
// # Errors
//
// The sentinels of vfs travel as a code of Connect or HTTP and a name, both in status.go; [Client] gives them back.
//
// # Watching
//
// A watch tells what is different from one revision to the next, not what was done on the way: one change of many files, or many
// of one, is one piece of news, and who is slow is told less often and misses nothing. Each says the revision up to which it is,
// from which a watch goes on after a connection broke, for as long as the history of the workspace is kept: ErrNoRevision says
// that everything must be looked at anew. A directory that was renamed is one change, whatever is in it.
//
// Nobody needs it to see what others do: reads are of the live tree, and a change is answered when every mount of the workspace on
// this machine shows it. It is for who would have to look again and again, and
// where inotify(7) does not reach, which tells a program on a mount only what came through that same mount.
//
// # Rights
//
// Every call that names a workspace, or an exec of one, is asked for at [Access] first. What is not allowed is told apart
// from what is not there, but nothing is said of an exec whose workspace the caller may not run programs in.
// Streams end when what let them in is revoked or expires, as one that is not known; what runs goes on.
package api

//go:generate go run github.com/bufbuild/buf/cmd/buf@v1.75.0 generate
