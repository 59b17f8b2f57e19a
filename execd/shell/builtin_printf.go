package shell

import (
	"fmt"
	"io"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command/printf"
)

func (sh *shell) builtinPrintf(args []string) int {
	args = args[1:]
	varName := ""
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch {
		case args[0] == "--":
			args = args[1:]
		case strings.HasPrefix(args[0], "-v"):
			varName = args[0][2:]
			args = args[1:]
			if varName == "" {
				if len(args) == 0 {
					sh.warnf("printf: -v: option requires an argument")
					sh.usage("printf")
					return 2
				}
				varName, args = args[0], args[1:]
			}
			if _, ok := parseRef(varName); !ok {
				sh.warnf("printf: `%s': not a valid identifier", varName)
				return 2
			}
			continue
		case args[0] == "-":
		default:
			return sh.badOption("printf", args[0])
		}
		break
	}
	if len(args) == 0 {
		sh.usage("printf")
		return 2
	}
	return sh.format(varName, args[0], args[1:])
}

// format is printf behind its options: to standard output, or to a variable.
func (sh *shell) format(varName, format string, args []string) int {
	var text strings.Builder
	p := &printf.Printer{
		Out: &text, Now: sh.cfg.Now, Zone: sh.zone(),
		Complain: func(message string) { sh.warnf("printf: %s", message) },
		Step: func() error {
			sh.step()
			sh.room(text.Len())
			return nil
		},
	}
	if err := p.Print(format, args); err != nil {
		sh.warnf("printf: %s", reasonOf(err))
		return 1
	}
	if varName != "" {
		if err := sh.assignText(varName, text.String()); err != nil {
			sh.warnf("printf: %v", err)
			return 1
		}
		return p.Status
	}
	if _, err := io.WriteString(sh.stdout(), text.String()); err != nil {
		return sh.written("printf", err)
	}
	return p.Status
}

// assignText assigns to a name or element that came in a string.
func (sh *shell) assignText(name, value string) error {
	r, ok := parseRef(name)
	if !ok {
		return fmt.Errorf("`%s': not a valid identifier", name)
	}
	if r.hasSub {
		r.sub = sh.subscriptText(r.name, r.sub)
	}
	return sh.assign(r, value, false)
}
