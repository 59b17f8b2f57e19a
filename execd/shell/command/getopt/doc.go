// Package getopt parses command lines as the GNU tools do: options and operands in any order, clustered short options,
// long options by any unambiguous beginning, "--" before what only looks like an option, and messages in the words that
// people and scripts know.
//
// It holds no state and touches nothing outside its arguments.
package getopt
