// Package wire holds fuzz targets for everything that comes from another machine, or that a person hands on from one: what
// package syncwire takes apart. It has nothing but tests.
//
//	FuzzFrame     every message of the protocol; the first byte of a frame says which
//	FuzzStream    streams of frames, sent to a server that has a workspace
//	FuzzAnswer    what a server answers a client that asks something; the first byte says what
//	FuzzRecord    what records and chunks are made of; the first byte says of which kind
//	FuzzAddress   URLs, fingerprints, rights, files of known hosts and of client keys; the first byte says which
//
// Decoders that a package keeps to itself have their targets beside them: FuzzStored in casstore (values in the store),
// FuzzToken in cmd/carrel/token (tokens and their file), FuzzReader in syncwire (frames out of a stream that comes in pieces).
//
// # What is held
//
// Beside that nothing panics: what decodes encodes to what decodes to the same, again and again; what does not is told by an
// error that has a number in the protocol; and the memory that is taken is bounded by the length of the input.
//
// # Corpora
//
// Seeds are the vectors in syncwire/testdata. What longer runs have found beyond them is in testdata/fuzz, minimised, and is
// run by every go test. A run by hand:
//
//	go test -run '^$' -fuzz '^FuzzFrame$' -fuzztime 1h -parallel 1 ./fuzz/wire
package wire
