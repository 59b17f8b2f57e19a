package file

import (
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// Table returns the commands of this package.
func Table() command.Table {
	return command.Table{
		"chgrp": tool.Command(chown), "chmod": tool.Command(chmod), "chown": tool.Command(chown), "cp": tool.Command(cp),
		"dd": tool.Command(dd), "df": tool.Command(df), "du": tool.Command(du), "file": tool.Command(file),
		"install": tool.Command(install), "link": tool.Command(link), "ln": tool.Command(ln),
		"ls": tool.Command(ls), "mkdir": tool.Command(mkdir), "mkfifo": tool.Command(mkfifo), "mktemp": tool.Command(mktemp), "mv": tool.Command(mv),
		"readlink": tool.Command(readlink), "realpath": tool.Command(realpath), "rm": tool.Command(rm),
		"rmdir": tool.Command(rmdir), "stat": tool.Command(stat), "sync": tool.Command(syncFiles), "touch": tool.Command(touch), "tree": tool.Command(tree),
		"truncate": tool.Command(truncate), "unlink": tool.Command(unlink),
	}
}
