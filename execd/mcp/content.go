package mcp

import (
	"encoding/base64"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/carrelfs/carrel/execd/tools"
)

func text(s string) sdk.Content { return &sdk.TextContent{Text: s} }

// readContent is the text as it is in the file, so that an edit can name it, and what is to be said of it beside.
func readContent(r *tools.ReadResult) []sdk.Content {
	note := text(readNote(r))
	switch {
	case r.Image:
		return []sdk.Content{&sdk.ImageContent{Data: r.Data, MIMEType: r.MIME}, note}
	case r.MIME != "":
		return []sdk.Content{text(base64.StdEncoding.EncodeToString(r.Data)), note}
	}
	return []sdk.Content{text(r.Text), note}
}

func readNote(r *tools.ReadResult) string {
	parts := []string{fmt.Sprintf("%s, %d bytes", r.Path, r.Size)}
	if r.MIME != "" {
		parts = append(parts, r.MIME)
	}
	if r.Line > 0 && r.Lines > 0 {
		parts = append(parts, fmt.Sprintf("lines %d to %d", r.Line, r.Line+r.Lines-1))
	}
	if r.BOM {
		parts = append(parts, "begins with a byte order mark, which is not shown")
	}
	if r.Lossy {
		parts = append(parts, "is not UTF-8; other bytes are shown as \uFFFD")
	}
	switch {
	case r.NextLine > 0:
		parts = append(parts, fmt.Sprintf("more from line %d", r.NextLine))
	case r.NextByte > 0:
		parts = append(parts, fmt.Sprintf("more from byte %d", r.NextByte))
	}
	return "[" + strings.Join(parts, "; ") + "]"
}

func editContent(r *tools.EditResult) []sdk.Content {
	if r.Cut {
		return []sdk.Content{text(r.Diff), text("[the difference is longer]")}
	}
	return []sdk.Content{text(r.Diff)}
}

func diffContent(r *tools.DiffResult) []sdk.Content {
	var b strings.Builder
	fmt.Fprintf(&b, "from %s to %s: %d paths differ", r.From, r.To, len(r.Changed))
	for _, c := range r.Changed {
		fmt.Fprintf(&b, "\n%s %s %s", c.Change, c.Type, c.Path)
		if c.Reason != "" {
			fmt.Fprintf(&b, " (%s)", c.Reason)
		}
	}
	if r.Cut {
		b.WriteString("\n[the difference of the last file shown is longer]")
	}
	if r.NextAfter != "" {
		fmt.Fprintf(&b, "\n[more after %q]", r.NextAfter)
	}
	if r.Diff == "" {
		return []sdk.Content{text(b.String())}
	}
	return []sdk.Content{text(b.String()), text(r.Diff)}
}
