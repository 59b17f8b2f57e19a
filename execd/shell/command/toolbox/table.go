package toolbox

import (
	"maps"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/archive"
	"github.com/carrelfs/carrel/execd/shell/command/awk"
	"github.com/carrelfs/carrel/execd/shell/command/basic"
	"github.com/carrelfs/carrel/execd/shell/command/calc"
	"github.com/carrelfs/carrel/execd/shell/command/compare"
	"github.com/carrelfs/carrel/execd/shell/command/data"
	"github.com/carrelfs/carrel/execd/shell/command/encode"
	"github.com/carrelfs/carrel/execd/shell/command/file"
	"github.com/carrelfs/carrel/execd/shell/command/git"
	"github.com/carrelfs/carrel/execd/shell/command/search"
	"github.com/carrelfs/carrel/execd/shell/command/sed"
	"github.com/carrelfs/carrel/execd/shell/command/sqlite"
	"github.com/carrelfs/carrel/execd/shell/command/text"
)

// Table returns all commands. The table is the caller's own.
func Table() command.Table {
	all := command.Table{}
	lookup := func(name string) bool { return all[name] != nil }
	for _, t := range []command.Table{archive.Table(), basic.Table(lookup), calc.Table(), compare.Table(), data.Table(), encode.Table(), file.Table(), git.Table(), search.Table(), sqlite.Table(), text.Table()} {
		maps.Copy(all, t)
	}
	all["awk"], all["gawk"], all["mawk"] = awk.Command, awk.Command, awk.Command
	all["sed"] = sed.Command
	return all
}
