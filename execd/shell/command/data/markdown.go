package data

import (
	"bufio"
	"context"
	"io"
	"strings"

	htmltomarkdown "github.com/JohannesKaufmann/html-to-markdown/v2"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

func bufWriter(w io.Writer) *bufio.Writer { return bufio.NewWriter(w) }

// maxHTML bounds a document: the library holds its tree, and cannot be stopped inside.
const maxHTML = 4 << 20

var markdownOptions = getopt.New("")

// htmlToMarkdown converts documents from files or standard input.
func htmlToMarkdown(ctx context.Context, c *tool.Call) error {
	_, names, err := c.Options(markdownOptions, 1)
	if err != nil {
		return err
	}
	return c.Each(ctx, names, func(name string, in *tool.Input) error {
		data, err := c.ReadAll(io.LimitReader(in, maxHTML+1))
		if err != nil {
			return err
		}
		if len(data) > maxHTML {
			c.Fault("%s: document is larger than %d bytes", name, maxHTML)
			return nil
		}
		if err := c.Take(int64(len(data)) * 16); err != nil {
			return err
		}
		text, err := htmltomarkdown.ConvertString(string(data))
		if err != nil {
			return err
		}
		_, err = c.Out.WriteString(strings.TrimRight(text, "\n") + "\n")
		return err
	})
}
