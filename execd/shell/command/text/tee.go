package text

import (
	"context"
	"errors"
	"io"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var teeOptions = getopt.New("aip", "append=a", "ignore-interrupts=i", "output-error::=p")

// sink is one of the places that tee writes to.
type sink struct {
	name string
	w    io.Writer
}

func tee(ctx context.Context, c *tool.Call) error {
	options, files, err := c.Options(teeOptions, 1)
	if err != nil {
		return err
	}
	flag := treepath.Write | treepath.Create | treepath.Truncate
	for _, o := range options {
		if o.Name == "a" {
			flag = treepath.Write | treepath.Create | treepath.Append
		}
	}
	sinks := []sink{{"standard output", c.Stdout}}
	for _, name := range files {
		f, err := c.FS.OpenFile(ctx, name, flag, 0o666)
		if err != nil {
			if err := c.FaultAt(ctx, name, err); err != nil {
				return err
			}
			continue
		}
		defer f.Close()
		sinks = append(sinks, sink{name, f})
	}
	return spread(ctx, c, sinks)
}

// spread writes what comes in to all sinks; one that fails is left out from then on.
func spread(ctx context.Context, c *tool.Call, sinks []sink) error {
	in := c.Standard(ctx)
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		for i := 0; n > 0 && i < len(sinks); i++ {
			if _, err := sinks[i].w.Write(buf[:n]); err != nil {
				if tool.Ends(ctx, err) {
					return err
				}
				c.Fault("%s: %s", sinks[i].name, command.Reason(err))
				sinks = append(sinks[:i], sinks[i+1:]...)
				i--
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
