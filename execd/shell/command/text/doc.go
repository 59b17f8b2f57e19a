// Package text holds the commands that turn streams of lines and columns into others: cat, head, sort, cut, tr and their
// like.
//
// They stream: what a command holds is a block, a line, or what it cannot do without (all lines in sort, tac and shuf,
// the wanted ones in tail), and that is counted against the script's memory. Text is bytes where GNU's tools take bytes
// (cut, tr, sort) and UTF-8 where they take characters (wc -m, fold, rev).
package text
