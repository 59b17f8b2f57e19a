// Package control lets every process work on a store that one process has open.
//
// A store has one owner, the process that holds its lock. The owner serves a unix socket inside the store's directory
// ([Listen], [Server]); everybody else dials it ([Dial]) and finds the same operations there: [Store], and
// [Workspace], which is a vfs.Tree. A command is therefore written once, against the interfaces, and works whether a
// mount is up or not.
//
// # The wire
//
// The socket speaks HTTP, so that other interfaces can be served on it by path ([Server.Handle]). A client asks for
//
//	GET /control HTTP/1.1
//	Upgrade: carrel-control
//	Carrel-Protocol: 1
//
// and is answered 101, or 426 with a sentence when the versions differ. From then on both sides send gob streams of
// frames: a header (call id, kind, method) and a body.
//
//	client                          owner
//	  call 7 lookup {..}     --->
//	  call 8 readAt {..}     --->
//	                         <---   reply 8 {..}        answers come in any order
//	  cancel 7               --->
//	                         <---   reply 7 interrupted
//	  call 9 watch {..}      --->
//	                         <---   part 9 {..} ...     a call that streams
//	  hold {tree 1, inode 5} --->                       no answer; takes effect before any later frame
//
// Backups are requests beside the frames, POST /backup and POST /load, whose bodies are the streams: each has a connection of
// its own, so none is held up by a slow disk or pipe at the other end.
//
// Names travel as bytes, errors as codes of errors.go. The socket's mode is 0600: who can connect can do everything.
//
// # What a lost connection does
//
// The owner cancels the calls of a client that is gone, gives back its Holds and closes its workspaces. A client whose
// owner is gone gets vfs.ErrClosed from every call; whether a change that was under way has happened is then unknown.
//
// # Locks
//
// Server.mu before session.mu; neither is held while a frame is read or written or the store is called. Frames are
// written under session.wmu or Client.wmu, which are leaves.
package control
