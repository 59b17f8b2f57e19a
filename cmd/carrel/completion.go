package main

import (
	"fmt"

	"github.com/urfave/cli/v2"
)

// The scripts ask the program itself what may come next: the library answers --generate-bash-completion.

const bashCompletion = `_carrel() {
  local words
  words=$("${COMP_WORDS[@]:0:COMP_CWORD}" --generate-bash-completion 2>/dev/null)
  [[ "${COMP_WORDS[COMP_CWORD]}" == -* ]] &&
    words=$("${COMP_WORDS[@]:0:COMP_CWORD}" "${COMP_WORDS[COMP_CWORD]}" --generate-bash-completion 2>/dev/null)
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o bashdefault -o default -F _carrel carrel
`

const zshCompletion = `#compdef carrel
_carrel() {
  local -a words_found
  if [[ "${words[CURRENT]}" == -* ]]; then
    words_found=("${(@f)$(${words[1,CURRENT]} --generate-bash-completion 2>/dev/null)}")
  else
    words_found=("${(@f)$(${words[1,CURRENT-1]} --generate-bash-completion 2>/dev/null)}")
  fi
  if [[ -n "${words_found[1]}" ]]; then
    compadd -a words_found
  fi
  _files
}
compdef _carrel carrel
`

func (p *program) completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print the completion script of a shell",
		ArgsUsage: "bash|zsh|fish",
		Description: "For bash: source <(carrel completion bash). For zsh: source <(carrel completion zsh).\n" +
			"For fish: carrel completion fish | source.",
		Action: p.completion,
	}
}

func (p *program) completion(c *cli.Context) error {
	args, err := arguments(c, 1, 1)
	if err != nil {
		return err
	}
	script := ""
	switch args[0] {
	case "bash":
		script = bashCompletion
	case "zsh":
		script = zshCompletion
	case "fish":
		if script, err = c.App.ToFishCompletion(); err != nil {
			return fmt.Errorf("completion: %w", err)
		}
	default:
		return &usageError{c, fmt.Sprintf("there is no completion for %q: bash, zsh or fish", args[0])}
	}
	_, err = p.stdout.WriteString(script)
	return err
}
