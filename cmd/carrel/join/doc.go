// Package join is what 'carrel join' runs: a mirror of a workspace on another machine, mounted on a directory.
//
//	carrel join (daemon.Supervisor) --starts, and starts again--> carrel join-daemon, with the state's directory
//	   mirror
//	   mount through fusefs
//	   exec.sock in the state's directory: the API of execs (cmd/carrel/execs, execd/api), on the mirror's tree
//	   the same over the connection to the server (cmd/carrel/machines), when this machine is to run what others send
//	   join.sock there: sync now, status, conflicts, resolve, and leave, for an umount that cuts off what is open
//
// An exec begins when everything that others wrote is here, or does not begin when the server cannot be reached; its end is
// told when the server has everything that it wrote, or says that it has not. A connection that breaks meanwhile is none of its
// business: nothing is started again.
//
// It ends when it is told to or when somebody unmounts the directory: then it kills what runs, unmounts, pushes what is not
// pushed yet, for as long as it may, and says what is left. What is left is in the state, and is pushed by the next join with
// it.
//
// # What survives a crash
//
// The state: see package mirror. The supervisor starts another daemon with it, which takes the dead mount away. When both have
// died, the next join on the same directory does.
package join
