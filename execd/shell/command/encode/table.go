package encode

import (
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// Table returns the commands of this package.
func Table() command.Table {
	t := command.Table{
		"base32": tool.Command(base32Body), "base64": tool.Command(base64Body), "cksum": tool.Command(cksum),
		"hexdump": tool.Command(hexdump),
		"hd":      tool.Command(hexdump), "od": tool.Command(od), "strings": tool.Command(stringsBody), "xxd": tool.Command(xxd),
	}
	for name, h := range hashes {
		t[name] = tool.Command(h.body)
	}
	return t
}

// Grammar returns what options the commands of this package have.
func Grammar() command.Grammar {
	g := command.Grammar{
		"base32": tool.Knows(baseOptions), "base64": tool.Knows(baseOptions), "cksum": tool.Knows(cksumOptions), "hexdump": tool.Knows(hexdumpOptions), "hd": tool.Knows(hexdumpOptions),
		"od": tool.Knows(odOptions), "strings": tool.Knows(stringsOptions), "xxd": tool.Knows(xxdOptions),
	}
	for name := range hashes {
		g[name] = tool.Knows(sumOptions)
	}
	return g
}
