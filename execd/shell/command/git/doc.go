// Package git is git(1) on a workspace's tree: what people type every day, on repositories in git's own format, which git
// itself reads and writes too.
//
// Objects, packs and the form of the index are those of go-git, over a filesystem made of the tree (disk). What is done
// with them is our own, since go-git's worktree asks the host for its configuration, its walks of trees take what cannot
// be read for the end, and its writers work in goroutines of their own; output follows git 2.39.
//
// # Other repositories
//
// A path, or a file URL, is in the workspace. Everything else is reached through what the host gives to Table, which
// decides what that is: a call has no network, and no file of the host, of its own.
//
// # What is not there
//
// No rebase, no submodules, no hooks, no filters but those of line ends, no sparse or linked work trees. Knows
// tells what a command has before it runs. A repository that asks for what is not there is refused, not misread.
//
// # What is never lost
//
// A change of the work tree is planned and checked before the first file is touched. What the user has changed, and what git
// does not know, stays where it is or stops the change, unless somebody says to throw it away. Nothing is written or
// removed through a symlink, or under a name that leads out of the work tree or into the repository.
//
// # What survives a crash
//
// What the tree promises for its own calls. Objects are written before the references that name them. References, the
// index, the configuration and packs are written beside their place and renamed into it, under the lock files that git has
// for them, so that a git in a container and one here never change one thing at once. A crash may leave such a lock.
package git
