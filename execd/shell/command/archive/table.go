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

// Grammar returns what options the commands of this package have.
func Grammar() command.Grammar {
	g := command.Grammar{"tar": knowsTar, "unzip": tool.Knows(unzipOptions), "zip": tool.Knows(zipOptions)}
	for name := range codecs {
		g[name] = tool.Knows(compressOptions)
	}
	return g
}

func knowsTar(args []string) error {
	return tool.Knows(tarOptions)(bundled(append([]string{""}, args...))[1:])
}
