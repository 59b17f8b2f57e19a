package main

import (
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/carrelfs/carrel/cmd/carrel/transfer"
)

// bar shows how far a long command is, when stderr is a terminal. It must be closed.
type bar struct{ bar *progressbar.ProgressBar }

// newBar counts to max, which is -1 when nobody knows the end, of bytes or of things.
func (p *program) newBar(what string, max int64, bytes bool) *bar {
	if !p.talk {
		return &bar{}
	}
	options := []progressbar.Option{
		progressbar.OptionSetDescription(what), progressbar.OptionSetWriter(p.stderr),
		progressbar.OptionThrottle(100 * time.Millisecond),
		progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth(),
	}
	if bytes {
		options = append(options, progressbar.OptionShowBytes(true))
	}
	return &bar{progressbar.NewOptions64(max, options...)}
}

// The errors of a bar are those of writing to a terminal that is gone: the work goes on.

func (b *bar) set(n uint64) {
	if b.bar != nil {
		_ = b.bar.Set64(int64(n))
	}
}

func (b *bar) transfer(r transfer.Report) {
	if b.bar == nil {
		return
	}
	b.bar.Describe(fmt.Sprintf("%d entries", r.Entries))
	b.set(r.Bytes)
}

func (b *bar) close() {
	if b.bar != nil {
		_ = b.bar.Finish()
	}
}
