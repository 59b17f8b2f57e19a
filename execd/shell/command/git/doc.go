// Package git is git(1) on a workspace's tree: what people type every day, on repositories in git's own format, which git
// itself reads and writes too.
//
// Objects, packs, references and the index are those of go-git, over a filesystem made of the tree (disk). What is done
// with them is our own, since go-git's worktree asks the host for its configuration; output follows git 2.39.
//
// A call has no network: there is no fetch, push or clone. Merges fast-forward or fail, and there is no stash and no rebase.
//
// # What survives a crash
//
// What the tree promises for its own calls. Objects are written before the references that name them, references and
// the index by renaming.
package git
