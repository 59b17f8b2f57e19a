// Package awk is the AWK language: POSIX's with the additions of gawk that scripts use (gensub, strftime, asort, match with
// an array, regular expressions as RS, switch; BEGINFILE, two-way pipes and arrays of arrays are not among them).
//
// A program is parsed into a tree in which every name has its place, and that tree is run. Every record, loop and call is
// a step of the script's bound; arrays and long strings are counted against its memory. Files are those of the process;
// pipes and system() run other commands of the shell through Process.Run, one after the other.
package awk
