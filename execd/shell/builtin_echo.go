package shell

import "strings"

func (sh *shell) builtinEcho(args []string) int {
	args = args[1:]
	newline, expand := true, sh.shopt(optXpgEcho)
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		for _, c := range args[0][1:] {
			switch c {
			case 'n':
				newline = false
			case 'e':
				expand = true
			case 'E':
				expand = false
			}
		}
		args = args[1:]
	}
	out := strings.Join(args, " ")
	if expand {
		var stop bool
		if out, stop = unescapeText(out, echoEscapes); stop {
			newline = false
		}
	}
	if newline {
		out += "\n"
	}
	return sh.print(out)
}
