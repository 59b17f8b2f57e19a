// Package reconcile merges two trees that were one, record by record. It is pure: package mirror merges what was written on
// two machines with it, and package casstore a fork into another workspace.
//
// # Words
//
// Of two trees that had a base in common, theirs is the one that goes on: the authority's, or the workspace that is merged
// into. Mine is the other: the mirror's, or the fork's. The rules are at [Reconcile]; what they could not merge is a
// [Conflict], which the keeper of the tree records ([Recorded]) until somebody resolves it.
package reconcile
