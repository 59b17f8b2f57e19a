package search

import (
	"fmt"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// Table returns the commands of this package.
func Table() command.Table {
	return command.Table{
		"egrep": tool.Command(grep), "fgrep": tool.Command(grep), "find": tool.Command(find), "grep": tool.Command(grep),
		"rg": tool.Command(rg), "xargs": tool.Command(xargs),
	}
}

// Grammar returns what options the commands of this package have.
func Grammar() command.Grammar {
	return command.Grammar{
		"egrep": tool.Knows(grepOptions), "fgrep": tool.Knows(grepOptions), "find": knowsFind, "grep": tool.Knows(grepOptions),
		"rg": tool.Knows(rgOptions), "xargs": tool.Knows(xargsOptions),
	}
}

// findWords are the words of an expression that take no argument.
var findWords = []string{"-true", "-noleaf", "-mount", "-xdev", "-ignore_readdir_race", "-noignore_readdir_race", "-nowarn", "-warn", "-false",
	"-depth", "-d", "-daystart", "-follow", "-print", "-print0", "-ls", "-prune", "-quit", "-delete", "-empty", "-readable", "-writable",
	"-executable", "-nouser", "-nogroup", "-a", "-and", "-o", "-or", "-not"}

// knowsFind looks at the words of an expression, without what belongs to them.
func knowsFind(args []string) error {
	args = (&finder{}).leading(args)
	for len(args) > 0 && !startsExpression(args[0]) {
		args = args[1:]
	}
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		_, one := findTests[word]
		switch {
		case len(word) < 2 || word[0] != '-' || slices.Contains(findWords, word):
		case one || len(word) == 8 && strings.HasPrefix(word, "-newer"):
			n := 1
			if word == "-fprintf" {
				n = 2
			}
			args = args[min(n, len(args)):]
		case word == "-exec" || word == "-execdir" || word == "-ok" || word == "-okdir":
			end := slices.IndexFunc(args, func(a string) bool { return a == ";" || a == "+" })
			args = args[end+1:] // all of it when there is no end
			if end < 0 {
				return nil
			}
		default:
			return fmt.Errorf("unknown predicate `%s'", word)
		}
	}
	return nil
}
