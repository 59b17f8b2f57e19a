package compare

import (
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// Table returns the commands of this package.
func Table() command.Table {
	return command.Table{"cmp": tool.Command(cmp), "diff": tool.Command(diff), "patch": tool.Command(patch)}
}

// Grammar returns what options the commands of this package have.
func Grammar() command.Grammar {
	return command.Grammar{"cmp": tool.Knows(cmpOptions), "diff": tool.Knows(diffOptions), "patch": tool.Knows(patchOptions)}
}
