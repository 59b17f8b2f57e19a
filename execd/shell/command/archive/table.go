package archive

import (
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// Table returns the commands of this package.
func Table() command.Table {
	t := command.Table{"tar": tool.Command(tarBody), "unzip": tool.Command(unzip), "zip": tool.Command(zipBody)}
	for name, c := range codecs {
		t[name] = tool.Command(c.body)
	}
	return t
}
