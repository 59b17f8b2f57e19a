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

// Grammar returns what options the commands of this package have. Those of jq take as many words as they like.
func Grammar() command.Grammar {
	return command.Grammar{"html-to-markdown": tool.Knows(markdownOptions), "yq": tool.Knows(yqOptions), "jq": knowsJQ}
}

// knowsJQ looks at every word by itself, as jq reads them.
func knowsJQ(args []string) error {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch arg {
		case "--arg", "--argjson", "--slurpfile", "--rawfile":
			args = args[min(2, len(args)):]
			continue
		case "--args", "--jsonargs":
			continue
		case "--":
			return nil
		}
		if len(arg) < 2 || arg[0] != '-' {
			continue
		}
		used := []string{arg}
		if takesValue(arg) && len(args) > 0 {
			used, args = append(used, args[0]), args[1:]
		}
		if err := tool.Knows(jqOptions)(used); err != nil {
			return err
		}
	}
	return nil
}
