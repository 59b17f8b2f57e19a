package text

import (
	"context"
	"fmt"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var pagerOptions = getopt.New("aABb:cCdeEfFgGh:iIj:JKLmMnNo:O:p:P:qQrRsSt:T:uUvVwWx:X~z:", "quit-if-one-screen=F",
	"RAW-CONTROL-CHARS=R", "chop-long-lines=S", "no-init=X", "LINE-NUMBERS=N", "quit-at-eof=e", "ignore-case=i", "squeeze=s")

// pager is less and more, which print what they are given where there is no terminal.
func pager(ctx context.Context, c *tool.Call) error {
	_, files, err := c.Options(pagerOptions, 1)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return copyThrough(c, c.Standard(ctx))
	}
	for _, name := range files {
		in, err := c.Open(ctx, name)
		if err == nil {
			err = copyThrough(c, in)
			_ = in.Close() // it was only read
		}
		if err != nil {
			if tool.Ends(ctx, err) {
				return err
			}
			fmt.Fprintf(c.Out, "%s: %s\n", name, command.Reason(err))
			c.Status = 1
		}
	}
	return nil
}
