package data

import (
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// Table returns the commands of this package.
func Table() command.Table {
	return command.Table{
		"html-to-markdown": tool.Command(htmlToMarkdown), "jq": tool.Command(jq), "yq": tool.Command(yq),
	}
}
