package text

import (
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// Table returns the commands of this package.
func Table() command.Table {
	return command.Table{
		"cat": tool.Command(cat), "column": tool.Command(column), "comm": tool.Command(comm), "cut": tool.Command(cut),
		"expand": tool.Command(expand), "fold": tool.Command(fold), "head": tool.Command(head), "join": tool.Command(join),
		"less": tool.Command(pager), "more": tool.Command(pager),
		"nl": tool.Command(nl), "paste": tool.Command(paste), "rev": tool.Command(rev), "shuf": tool.Command(shuf),
		"sort": tool.Command(sortLines), "split": tool.Command(split), "tac": tool.Command(tac), "tail": tool.Command(tail),
		"tee": tool.Command(tee), "tr": tool.Command(tr), "unexpand": tool.Command(unexpand), "uniq": tool.Command(uniq),
		"wc": tool.Command(wc),
	}
}

// Grammar returns what options the commands of this package have.
func Grammar() command.Grammar {
	return command.Grammar{
		"cat": tool.Knows(catOptions), "column": tool.Knows(columnOptions), "comm": tool.Knows(commOptions), "cut": tool.Knows(cutOptions),
		"expand": tool.Knows(expandOptions), "fold": knowsFold, "head": knowsNumbered(headOptions), "join": tool.Knows(joinOptions),
		"nl": tool.Knows(nlOptions), "paste": tool.Knows(pasteOptions), "rev": tool.Knows(revOptions), "shuf": tool.Knows(shufOptions),
		"sort": tool.Knows(sortOptions), "split": tool.Knows(splitOptions), "tac": tool.Knows(tacOptions), "tail": knowsNumbered(tailOptions),
		"tee": tool.Knows(teeOptions), "tr": tool.Knows(trOptions), "unexpand": tool.Knows(unexpandOptions), "uniq": tool.Knows(uniqOptions),
		"wc": tool.Knows(wcOptions),
	}
}

// knowsNumbered is for commands that take a number behind a dash, as they did of old.
func knowsNumbered(p *getopt.Parser) func(args []string) error {
	return func(args []string) error { return tool.Knows(p)(obsolete(append([]string{""}, args...))[1:]) }
}

// knowsFold leaves out a width behind a dash.
func knowsFold(args []string) error {
	if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && isDigit(args[0][1]) {
		args = args[1:]
	}
	return tool.Knows(foldOptions)(args)
}
