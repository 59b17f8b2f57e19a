// Package regex compiles the regular expressions of grep, sed, awk, find and expr: POSIX basic and extended ones with
// GNU's additions, and Perl's.
//
// # How one is run
//
// An expression is parsed into a tree of ours. What a finite automaton can do is written out again in RE2's syntax and
// runs on the standard library's engine, leftmost and longest, in time linear in the text. Only back-references, looking
// around, \< before what may be no word character and their like run on a backtracking machine, whose every step is
// counted: see Options.Step. A literal is searched for as such, and one that every match must hold is looked for
// before any engine starts.
//
// # Text
//
// Patterns and texts are UTF-8; a byte that is not part of a valid sequence counts as one character that only "." and
// negated sets match. Letters are Unicode's.
//
// A Regexp is safe for concurrent use.
package regex
