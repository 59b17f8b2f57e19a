package calc

import (
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// Table returns the commands of this package.
func Table() command.Table {
	return command.Table{"bc": tool.Command(bc), "dc": tool.Command(dc)}
}

// Grammar returns what options the commands of this package have.
func Grammar() command.Grammar {
	return command.Grammar{"bc": tool.Knows(bcOptions), "dc": tool.Knows(dcOptions)}
}
