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

// Grammar returns what options the commands of this package have.
func Grammar() command.Grammar {
	return command.Grammar{
		"chgrp": tool.Knows(chownOptions), "chmod": knowsChmod, "chown": tool.Knows(chownOptions), "cp": tool.Knows(cpOptions),
		"df": tool.Knows(dfOptions), "du": tool.Knows(duOptions), "file": tool.Knows(fileOptions), "install": tool.Knows(installOptions),
		"ln": tool.Knows(lnOptions),
		"ls": tool.Knows(lsOptions), "mkdir": tool.Knows(mkdirOptions), "mkfifo": tool.Knows(mkfifoOptions), "mktemp": tool.Knows(mktempOptions), "mv": tool.Knows(mvOptions),
		"readlink": tool.Knows(readlinkOptions), "realpath": tool.Knows(realpathOptions), "rm": tool.Knows(rmOptions),
		"rmdir": tool.Knows(rmdirOptions), "stat": tool.Knows(statOptions), "touch": tool.Knows(touchOptions), "tree": tool.Knows(treeOptions),
		"truncate": tool.Knows(truncateOptions),
	}
}

// knowsChmod leaves out modes that look like options.
func knowsChmod(args []string) error {
	rest, _ := dashModes(args)
	return tool.Knows(chmodOptions)(rest)
}
