// Package search holds the commands that look for lines and files, and run others on what they find: grep and its
// siblings, rg, find and xargs.
//
// A search of a text needs one block of memory however long the text is. What a literal can decide is decided by a search
// for bytes over whole blocks; only lines that hold the literal are looked at one by one. Walks go through directories in
// bytewise order of names, and what disappears on the way is passed over.
package search
