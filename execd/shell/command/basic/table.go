package basic

import (
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// Table returns the commands of this package. lookup says whether there is a command of a name, for which.
func Table(lookup func(name string) bool) command.Table {
	t := command.Table{
		"[": tool.Command(test), "arch": tool.Command(arch), "groups": tool.Command(groups), "tty": tool.Command(tty),
		"basename": tool.Command(basename), "date": tool.Command(date),
		"dirname": tool.Command(dirname), "echo": tool.Command(echo), "env": tool.Command(env),
		"envsubst": tool.Command(envsubst), "expr": tool.Command(expr), "factor": tool.Command(factor),
		"false": tool.Command(no), "hostname": tool.Command(hostname), "id": tool.Command(id), "nproc": tool.Command(nproc),
		"printenv": tool.Command(printenv), "printf": tool.Command(format), "pwd": tool.Command(pwd),
		"seq": tool.Command(seq), "sleep": tool.Command(sleep), "test": tool.Command(test),
		"timeout": tool.Command(timeout), "true": tool.Command(ok), "uname": tool.Command(uname),
		"which": tool.Command(which(lookup)), "whoami": tool.Command(whoami), "yes": tool.Command(yes),
	}
	for name, p := range prefixes {
		t[name] = tool.Command(p.body)
	}
	return t
}

// Grammar returns what options the commands of this package have.
func Grammar() command.Grammar {
	return command.Grammar{
		"basename": tool.Knows(basenameOptions), "date": tool.Knows(dateOptions), "dirname": tool.Knows(dirnameOptions),
		"env": tool.Knows(envOptions), "envsubst": tool.Knows(envsubstOptions), "factor": tool.Knows(factorOptions), "id": tool.Knows(idOptions),
		"timeout": tool.Knows(timeoutOptions), "uname": tool.Knows(unameOptions),
	}
}
