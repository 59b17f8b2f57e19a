// Package localpath keeps some paths of a workspace on one machine.
//
// A [Tree] presents two trees as one: what is shared, and what is local. Which a name is of is decided by patterns with the
// syntax of .gitignore (gitignore(5)), when the name is made or something is renamed to it: what matches is made in the local tree, and
// so is all that is made in a directory of that. The shared tree never hears of it.
//
//	presented                 shared            local
//	/                         /                 /1/         the box of the root
//	/src/                     /src/             /17/        that of src, which is inode 17
//	/src/main.go              /src/main.go
//	/src/build/   (local)                       /17/build/
//
// A box is a directory in the root of the local tree. It holds the local entries of one shared directory, whose number is its name, so
// that they stay with that directory wherever it is moved to, by whoever. The box of a directory that others have removed is
// unreachable; Sweep takes it away with what is in it.
//
// What others have in the shared tree under a name that matches is hidden. So two machines that both keep their build directories
// to themselves have each their own, and neither is in the way of one who does not. A directory in which something is hidden is
// not empty, and is not removed.
//
// # Renames
//
// From one tree into the other what is renamed is copied, with everything that is in it, put in its place at once, and then removed where it was: one
// crash leaves it in both, or in one and a part of it, whose name begins with .carrel-moving-. Who has a file of it open goes on with
// the one that was removed, as after a mv between two disks. Two names of which one is local cannot be links of one file
// (vfs.ErrNotPermitted), nor be exchanged (vfs.ErrInvalid).
//
// # Inode numbers and offsets
//
// The numbers of local inodes have the bit below the highest set, which no store gives out. In a listing both are in the order of their offsets: the
// trees must give the same name the same offset, and different ones different offsets, as those of package casstore do but for
// one pair in 2^55.
//
// # Locks
//
// Tree.mu guards where boxes and directories are. It is not held while one of the trees is called.
package localpath
