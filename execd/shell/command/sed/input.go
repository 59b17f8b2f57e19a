package sed

import (
	"context"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// input is the lines of all files, one after another.
type input struct {
	ctx   context.Context
	call  *tool.Call
	names []string
	end   byte

	at    string // the file that the present line is of
	open  *tool.Input
	lines *tool.Lines
	line  int
	whole bool
	err   error
}

// next returns the next line.
func (in *input) next() ([]byte, bool, error) {
	if !in.more() {
		return nil, false, in.err
	}
	line, _ := in.lines.Next()
	in.line++
	in.whole = in.lines.Whole()
	return line, true, nil
}

// more says whether a line follows, opening the next files as far as needed. It makes the last line that next returned
// invalid.
func (in *input) more() bool {
	for in.err == nil {
		if in.lines != nil {
			if in.lines.More() {
				return true
			}
			in.close(in.lines.Err())
			continue
		}
		if len(in.names) == 0 {
			return false
		}
		in.openNext()
	}
	return false
}

func (in *input) openNext() {
	name := in.names[0]
	in.names = in.names[1:]
	opened, err := in.call.Open(in.ctx, name)
	if err != nil {
		in.fault(name, err)
		return
	}
	in.at, in.open, in.lines = name, opened, in.call.Records(opened, in.end)
}

func (in *input) close(err error) {
	if err != nil {
		in.fault(in.at, err)
	}
	_ = in.open.Close()
	in.lines, in.open = nil, nil
}

func (in *input) fault(name string, err error) {
	switch {
	case tool.Ends(in.ctx, err):
		in.err = err
		return
	case tool.IsDir(err):
		in.call.Say("read error on %s: Is a directory", name)
		in.call.Status = 2
		return
	}
	in.call.Say("can't read %s: %s", name, command.Reason(err))
	in.call.Status = 2
}

// name is what F prints.
func (in *input) name() string { return in.at }
