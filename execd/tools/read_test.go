package tools_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/tools"
)

const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"

func TestRead(t *testing.T) {
	d := newDesk(t)
	long := strings.Repeat("é", 512<<10) // one line of 1 MiB
	for path, text := range map[string]string{
		"empty": "", "one": "one\n", "unended": "one\ntwo", "crlf": "a\r\nb\r\n", "bom": "\uFEFFa\n", "latin": "caf\xe9\n",
		"binary": "\x00\x01", "long": long, "long2": "x\n" + long, "many": strings.Repeat("line\n", 3000), "pic": png,
		"huge": strings.Repeat(strings.Repeat("y", 1023)+"\n", 100),
	} {
		d.put("/"+path, text)
	}
	d.ok(d.FS.Mkdir(t.Context(), "/dir", 0o755))
	d.ok(d.FS.Mkfifo(t.Context(), "/fifo", 0o644))
	d.link("one", "/link")
	for _, tt := range []struct {
		args tools.ReadArgs
		want tools.ReadResult
		err  error
	}{
		{args: tools.ReadArgs{Path: "empty"}, want: tools.ReadResult{Line: 1}},
		{args: tools.ReadArgs{Path: "one"}, want: tools.ReadResult{Text: "one\n", Line: 1, Lines: 1}},
		{args: tools.ReadArgs{Path: "link"}, want: tools.ReadResult{Text: "one\n", Line: 1, Lines: 1}},
		{args: tools.ReadArgs{Path: "unended"}, want: tools.ReadResult{Text: "one\ntwo", Line: 1, Lines: 2}},
		{args: tools.ReadArgs{Path: "unended", Line: 2}, want: tools.ReadResult{Text: "two", Line: 2, Lines: 1}},
		{args: tools.ReadArgs{Path: "unended", Line: 3}, err: vfs.ErrInvalid},
		{args: tools.ReadArgs{Path: "one", Line: 2}, err: vfs.ErrInvalid},
		{args: tools.ReadArgs{Path: "crlf"}, want: tools.ReadResult{Text: "a\r\nb\r\n", Line: 1, Lines: 2}},
		{args: tools.ReadArgs{Path: "crlf", Lines: 1},
			want: tools.ReadResult{Text: "a\r\n", Line: 1, Lines: 1, NextLine: 2, NextByte: 3}},
		{args: tools.ReadArgs{Path: "bom"}, want: tools.ReadResult{Text: "a\n", Line: 1, Lines: 1, BOM: true}},
		{args: tools.ReadArgs{Path: "latin"}, want: tools.ReadResult{Text: "caf\uFFFD\n", Line: 1, Lines: 1, Lossy: true}},
		{args: tools.ReadArgs{Path: "binary"}, err: tools.ErrBinary},
		{args: tools.ReadArgs{Path: "binary", Base64: true},
			want: tools.ReadResult{Data: []byte{0, 1}, MIME: "application/octet-stream"}},
		{args: tools.ReadArgs{Path: "binary", Base64: true, Bytes: 1},
			want: tools.ReadResult{Data: []byte{0}, MIME: "application/octet-stream", NextByte: 1}},
		{args: tools.ReadArgs{Path: "pic"}, want: tools.ReadResult{Data: []byte(png), MIME: "image/png", Image: true}},
		{args: tools.ReadArgs{Path: "pic", Base64: true, Byte: 14}, want: tools.ReadResult{Data: []byte("DR"), MIME: "image/png"}},
		{args: tools.ReadArgs{Path: "long"},
			want: tools.ReadResult{Text: long[:tools.MaxRead], Line: 1, Lines: 1, NextByte: tools.MaxRead}},
		{args: tools.ReadArgs{Path: "long", Byte: 1, Bytes: 4}, want: tools.ReadResult{Text: "\uFFFDé", Lines: 1, Lossy: true, NextByte: 4}},
		{args: tools.ReadArgs{Path: "long2"}, want: tools.ReadResult{Text: "x\n", Line: 1, Lines: 1, NextLine: 2, NextByte: 2}},
		{args: tools.ReadArgs{Path: "many"}, want: tools.ReadResult{Text: strings.Repeat("line\n", 2000), Line: 1, Lines: 2000,
			NextLine: 2001, NextByte: 10000}},
		{args: tools.ReadArgs{Path: "many", Line: 2999, Lines: 5},
			want: tools.ReadResult{Text: "line\nline\n", Line: 2999, Lines: 2}},
		{args: tools.ReadArgs{Path: "huge"}, want: tools.ReadResult{Text: strings.Repeat(strings.Repeat("y", 1023)+"\n", 48),
			Line: 1, Lines: 48, NextLine: 49, NextByte: 48 << 10}},
		{args: tools.ReadArgs{Path: "one", Byte: 100}, want: tools.ReadResult{}},
		{args: tools.ReadArgs{Path: "one", Byte: -1}, err: vfs.ErrInvalid},
		{args: tools.ReadArgs{Path: "one", Line: 1, Byte: 1}, err: vfs.ErrInvalid},
		{args: tools.ReadArgs{Path: "dir"}, err: vfs.ErrIsDir},
		{args: tools.ReadArgs{Path: "fifo"}, err: vfs.ErrNotSupported},
		{args: tools.ReadArgs{Path: "none"}, err: vfs.ErrNotExist},
		{args: tools.ReadArgs{Path: ""}, err: vfs.ErrNotExist},
		{args: tools.ReadArgs{Path: "one/x"}, err: vfs.ErrNotDir},
	} {
		what := fmt.Sprintf("%+v", tt.args)
		got, err := d.Read(t.Context(), tt.args)
		wantErr(t, what, err, tt.err)
		if err != nil {
			continue
		}
		got.Path, got.Size = "", 0
		if fmt.Sprint(*got) != fmt.Sprint(tt.want) || !bytes.Equal(got.Data, tt.want.Data) {
			t.Errorf("%s: %.300q, want %.300q", what, fmt.Sprintf("%+v", *got), fmt.Sprintf("%+v", tt.want))
		}
	}
}

// Following the continuations gives every byte of a file once.
func TestReadOn(t *testing.T) {
	d := newDesk(t)
	text := strings.Repeat(strings.Repeat("wörter ", 3000)+"\n", 7) + strings.Repeat("ü", 100<<10) + "\n" + strings.Repeat("z\n", 5000)
	d.put("/f", text)
	var all strings.Builder
	for args := (tools.ReadArgs{Path: "/f"}); ; {
		r, err := d.Read(t.Context(), args)
		d.ok(err)
		if len(r.Text) > tools.MaxRead || r.Lossy {
			t.Fatalf("%d bytes, lossy %t", len(r.Text), r.Lossy)
		}
		all.WriteString(r.Text)
		if r.NextByte == 0 {
			break
		}
		args = tools.ReadArgs{Path: "/f", Byte: int64(r.NextByte)}
		if r.NextLine > 0 {
			args = tools.ReadArgs{Path: "/f", Line: r.NextLine}
		}
	}
	if all.String() != text {
		t.Errorf("read %d bytes, want %d", all.Len(), len(text))
	}
}

func TestReadLargeImage(t *testing.T) {
	d := newDesk(t)
	d.put("/big.png", png+strings.Repeat("\x00", tools.MaxImage))
	_, err := d.Read(t.Context(), tools.ReadArgs{Path: "/big.png"})
	wantErr(t, "read", err, vfs.ErrTooBig)
	r, err := d.Read(t.Context(), tools.ReadArgs{Path: "/big.png", Base64: true})
	d.ok(err)
	if len(r.Data) != tools.MaxRead || r.NextByte != tools.MaxRead {
		t.Errorf("%d bytes, next %d", len(r.Data), r.NextByte)
	}
}
