// Package api serves execs and files to other programs: on the control socket, where whoever can connect may do
// everything, and wherever else a token decides.
//
//	/carrel.v1.ExecService/…       Connect, gRPC-Web and gRPC (carrel/v1/exec.proto); curl with JSON works too
//	/c/WS/file/PATH                GET, HEAD with ranges; PUT a whole file; DELETE; GET of a directory lists it, in JSON
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
// # Rights
//
// Every call that names a workspace, or an exec of one, is asked for at [Access] first. What is not allowed is told apart
// from what is not there, but nothing is said of an exec whose workspace the caller may not run programs in.
// Streams end when what let them in is revoked or expires, as one that is not known; what runs goes on.
package api

//go:generate go run github.com/bufbuild/buf/cmd/buf@v1.75.0 generate
