// Package file holds the commands that look at the tree and change it: ls, cp, mv, rm, stat, chmod, dd, install and
// their like.
//
// Names are resolved by treepath.FS at every step, as a real process's are by the kernel; what another caller renames
// meanwhile can make a command fail as it would there. mv is one atomic rename. cp shares what is stored where the tree
// can. What a command has done before it is ended stays done.
package file
