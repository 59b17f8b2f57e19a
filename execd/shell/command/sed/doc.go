// Package sed is the stream editor: GNU sed's commands, addresses and options, but for those that run other programs.
//
// A script is parsed into a list of commands with jumps between them, and run by a machine with a pattern space and a hold
// space, line by line: memory is what those two hold. Every line counts as work, and so does every jump, so that a loop
// in a script ends with the context or the bound. A file that is edited in place is written anew beside the old one and
// takes its name in one rename.
package sed
