package toolbox

import (
	"maps"

	"github.com/go-git/go-git/v5/plumbing/transport"

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

// Table returns all commands. The table is the caller's own. Through remotes git reaches repositories outside of the
// workspace; nil is for none.
func Table(remotes transport.Transport) command.Table {
	all := command.Table{}
	lookup := func(name string) bool { return all[name] != nil || name == "bash" || name == "sh" } // the shell itself
	for _, t := range []command.Table{archive.Table(), basic.Table(lookup), calc.Table(), compare.Table(), data.Table(), encode.Table(), file.Table(), git.Table(remotes), search.Table(), sqlite.Table(), text.Table()} {
		maps.Copy(all, t)
	}
	all["awk"], all["gawk"], all["mawk"] = awk.Command, awk.Command, awk.Command
	all["sed"] = sed.Command
	return all
}

// Grammar returns what the commands of the table have, for who is to decide whether they will do. It is the caller's own.
func Grammar() command.Grammar {
	all := command.Grammar{"awk": awk.Knows, "gawk": awk.Knows, "mawk": awk.Knows, "sed": sed.Knows, "git": git.Knows}
	for _, g := range []command.Grammar{archive.Grammar(), basic.Grammar(), calc.Grammar(), compare.Grammar(), data.Grammar(), encode.Grammar(),
		file.Grammar(), search.Grammar(), text.Grammar()} {
		maps.Copy(all, g)
	}
	return all
}
