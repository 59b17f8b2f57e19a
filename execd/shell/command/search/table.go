package search

import (
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
