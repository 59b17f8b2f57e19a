// Package sqlite is sqlite3(1): SQL on databases in a workspace's tree, with the output modes and the commands of the real
// one's shell that scripts use. It speaks as version 3.40 does.
//
// The engine is SQLite itself, in Go and without the host (go-sqlite3). Files are those of the process, by a VFS of
// SQLite's (files); temporary ones are memory, which is counted.
//
// # What it promises
//
// No file of the host's can be named: the authorizer refuses what would lead to another VFS, see [files]. Work is counted
// every thousand steps of SQLite's machine, and when it reads or writes. Its memory is bounded, and so are values, since no
// function of SQLite's can be stopped in the middle: those whose time is not in proportion to what they get are replaced.
//
// Locks hold among the processes of one script. What mounts the workspace does not see them, nor they its; SQLite's journal
// keeps a database whole if a script ends in the middle, not if two write at once. Databases in WAL mode are opened for one
// process alone, since their index would be shared memory.
//
// # What survives a crash
//
// What SQLite promises: a transaction that was committed, and nothing of one that was not.
package sqlite
