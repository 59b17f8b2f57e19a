package text

import (
	"github.com/carrelfs/carrel/execd/shell/command"
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
