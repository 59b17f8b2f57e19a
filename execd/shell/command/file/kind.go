package file

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var fileOptions = getopt.New("bhiLEknNprsvzZ0", "brief=b", "mime=i", "mime-type", "mime-encoding", "dereference=L",
	"no-dereference=h", "no-pad=N")

// kind is what file(1) says of some bytes.
type kind struct {
	text, mime, encoding string
}

func file(ctx context.Context, c *tool.Call) error {
	options, names, err := c.Options(fileOptions, 1)
	if err != nil {
		return err
	}
	brief, what, follow := false, "", false
	for _, o := range options {
		switch o.Name {
		case "b":
			brief = true
		case "i", "mime-type", "mime-encoding":
			what = o.Name
		case "L":
			follow = true
		case "h":
			follow = false
		}
	}
	if len(names) == 0 {
		return c.Die(1, "usage: file [-bhiLN] [--mime-type] [--mime-encoding] file ...")
	}
	width := 0
	for _, name := range names {
		width = max(width, len(name)+1)
	}
	for _, name := range names {
		k, err := kindOf(ctx, c, name, follow)
		if err != nil {
			return err
		}
		text := k.text
		switch what {
		case "i":
			text = k.mime + "; charset=" + k.encoding
		case "mime-type":
			text = k.mime
		case "mime-encoding":
			text = k.encoding
		}
		if !brief {
			fmt.Fprintf(c.Out, "%-*s ", width, name+":")
		}
		_, _ = c.Out.WriteString(text + "\n")
	}
	return nil
}

func kindOf(ctx context.Context, c *tool.Call, name string, follow bool) (kind, error) {
	if name == "-" {
		return sniff(c.Standard(ctx), 0)
	}
	look := c.FS.Lstat
	if follow {
		look = c.FS.Stat
	}
	a, err := look(ctx, name)
	if err != nil {
		return kind{text: "cannot open `" + name + "' (" + command.Reason(err) + ")"}, nil
	}
	special := func(text, mime string) (kind, error) { return kind{text, "inode/" + mime, "binary"}, nil }
	switch a.Type {
	case vfs.TypeDir:
		return special("directory", "directory")
	case vfs.TypeSymlink:
		target, _ := c.FS.Readlink(ctx, name)
		if _, err := c.FS.Stat(ctx, name); err != nil {
			return special("broken symbolic link to "+target, "symlink")
		}
		return special("symbolic link to "+target, "symlink")
	case vfs.TypeFIFO:
		return special("fifo (named pipe)", "fifo")
	case vfs.TypeSocket:
		return special("socket", "socket")
	case vfs.TypeCharDev:
		return special("character special", "chardevice")
	case vfs.TypeBlockDev:
		return special("block special", "blockdevice")
	}
	in, err := c.Open(ctx, name)
	if err != nil {
		return kind{}, c.FaultAt(ctx, name, err)
	}
	defer in.Close()
	return sniff(in, a.Size)
}

func sniff(in io.Reader, size uint64) (kind, error) {
	head := make([]byte, 256<<10)
	n, err := io.ReadFull(in, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return kind{}, err
	}
	return identify(head[:n]), nil
}

// signatures are the beginnings that tell a format; the first that fits counts.
var signatures = []struct {
	offset     int
	magic      string
	text, mime string
}{
	{0, "\x7fELF", "ELF", "application/x-executable"},
	{0, "\x89PNG\r\n\x1a\n", "PNG image data", "image/png"},
	{0, "\xff\xd8\xff", "JPEG image data", "image/jpeg"},
	{0, "GIF8", "GIF image data", "image/gif"},
	{0, "%PDF-", "PDF document", "application/pdf"},
	{0, "PK\x03\x04", "Zip archive data, at least v2.0 to extract", "application/zip"},
	{0, "PK\x05\x06", "Zip archive data (empty)", "application/zip"},
	{0, "\x1f\x8b", "gzip compressed data", "application/gzip"},
	{0, "BZh", "bzip2 compressed data", "application/x-bzip2"},
	{0, "\xfd7zXZ\x00", "XZ compressed data", "application/x-xz"},
	{0, "\x28\xb5\x2f\xfd", "Zstandard compressed data (v0.8+)", "application/zstd"},
	{0, "7z\xbc\xaf\x27\x1c", "7-zip archive data", "application/x-7z-compressed"},
	{257, "ustar\x00", "POSIX tar archive", "application/x-tar"},
	{257, "ustar ", "POSIX tar archive (GNU)", "application/x-tar"},
	{0, "SQLite format 3\x00", "SQLite 3.x database", "application/vnd.sqlite3"},
	{0, "\x00asm", "WebAssembly (wasm) binary module", "application/wasm"},
	{0, "RIFF", "RIFF (little-endian) data", "application/octet-stream"},
	{0, "OggS", "Ogg data", "audio/ogg"},
	{0, "ID3", "Audio file with ID3", "audio/mpeg"},
	{0, "BM", "PC bitmap", "image/bmp"},
	{0, "wOFF", "Web Open Font Format", "font/woff"},
	{0, "wOF2", "Web Open Font Format (Version 2)", "font/woff2"},
	{0, "MZ", "PE32 executable", "application/vnd.microsoft.portable-executable"},
	{0, "\xca\xfe\xba\xbe", "compiled Java class data", "application/x-java-applet"},
	{0, "-----BEGIN CERTIFICATE", "PEM certificate", "text/plain"},
}

func identify(b []byte) kind {
	if len(b) == 0 {
		return kind{"empty", "inode/x-empty", "binary"}
	}
	for _, s := range signatures {
		if len(b) >= s.offset+len(s.magic) && string(b[s.offset:s.offset+len(s.magic)]) == s.magic {
			return kind{s.text + details(s.mime, b), s.mime, "binary"}
		}
	}
	encoding, words := encodingOf(b)
	if encoding == "binary" {
		return kind{"data", "application/octet-stream", "binary"}
	}
	what, mime := language(b)
	if what == "JSON" {
		return kind{"JSON text data", mime, encoding}
	}
	return kind{strings.TrimPrefix(what+", "+words+" text"+execAble(what)+lineEnds(b), ", "), mime, encoding}
}

func execAble(what string) string {
	if strings.HasSuffix(what, "script") {
		return " executable"
	}
	return ""
}

// details adds what a header tells beside the format.
func details(mime string, b []byte) string {
	big := func(at, n int) (v int) {
		for i := range n {
			v = v<<8 | int(b[at+i])
		}
		return v
	}
	switch {
	case mime == "image/png" && len(b) >= 29:
		color := map[byte]string{0: "grayscale", 2: "RGB", 3: "colormap", 4: "gray+alpha", 6: "RGBA"}[b[25]]
		return fmt.Sprintf(", %d x %d, %d-bit/color %s, non-interlaced", big(16, 4), big(20, 4), b[24], color)
	case mime == "image/gif" && len(b) >= 10:
		return fmt.Sprintf(", version %s, %d x %d", b[3:6], int(b[6])|int(b[7])<<8, int(b[8])|int(b[9])<<8)
	case mime == "application/pdf" && len(b) >= 8:
		return ", version " + string(b[5:8])
	case mime == "application/x-executable" && len(b) >= 20:
		return elfDetails(b)
	}
	return ""
}

func elfDetails(b []byte) string {
	bits := map[byte]string{1: "32", 2: "64"}[b[4]]
	order := map[byte]string{1: "LSB", 2: "MSB"}[b[5]]
	what := map[byte]string{1: "relocatable", 2: "executable", 3: "shared object", 4: "core file"}[b[16]]
	machine := map[byte]string{3: "Intel 80386", 62: "x86-64", 40: "ARM", 183: "ARM aarch64"}[b[18]]
	return " " + bits + "-bit " + order + " " + what + ", " + machine + ", version 1 (SYSV)"
}

func encodingOf(b []byte) (mime, words string) {
	ascii, control := true, false
	for _, c := range b {
		ascii = ascii && c < 0x80
		control = control || c < 7 || c > 13 && c < 27 || c > 27 && c < 32 || c == 0x7f
	}
	cut := b
	for i := 0; i < 3 && len(cut) > 0 && !utf8.Valid(cut); i++ {
		cut = cut[:len(cut)-1] // the end of what was read may be inside of a character
	}
	switch {
	case bytes.HasPrefix(b, []byte("\xff\xfe")):
		return "utf-16le", "Unicode text, UTF-16, little-endian"
	case control:
		return "binary", ""
	case ascii:
		return "us-ascii", "ASCII"
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		return "utf-8", "Unicode text, UTF-8 (with BOM)"
	case utf8.Valid(cut):
		return "utf-8", "Unicode text, UTF-8"
	}
	return "iso-8859-1", "ISO-8859"
}

// language tells what a text is written in.
func language(b []byte) (what, mime string) {
	head := string(b[:min(len(b), 1024)])
	if strings.HasPrefix(head, "#!") {
		return script(strings.SplitN(head[2:], "\n", 2)[0])
	}
	trimmed := strings.TrimLeft(head, " \t\r\n")
	lower := strings.ToLower(trimmed)
	switch {
	case (strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[")) && json.Valid(b):
		return "JSON", "application/json"
	case strings.HasPrefix(lower, "<!doctype html"), strings.HasPrefix(lower, "<html"):
		return "HTML document", "text/html"
	case strings.HasPrefix(lower, "<?xml"):
		return "XML 1.0 document", "text/xml"
	case strings.HasPrefix(lower, "<svg"):
		return "SVG Scalable Vector Graphics image", "image/svg+xml"
	}
	return "", "text/plain"
}

func script(line string) (what, mime string) {
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return "", "text/plain"
	}
	name := fields[0][strings.LastIndexByte(fields[0], '/')+1:]
	if name == "env" && len(fields) > 1 {
		name = fields[1]
	}
	switch {
	case name == "sh" || name == "dash":
		return "POSIX shell script", "text/x-shellscript"
	case name == "bash":
		return "Bourne-Again shell script", "text/x-shellscript"
	case strings.HasPrefix(name, "python"):
		return "Python script", "text/x-script.python"
	case name == "perl":
		return "Perl script", "text/x-perl"
	case name == "node":
		return "Node.js script", "application/javascript"
	}
	return "a " + strings.TrimSpace(line) + " script", "text/plain"
}

func lineEnds(b []byte) string {
	switch crlf, lf := bytes.Count(b, []byte("\r\n")), bytes.Count(b, []byte("\n")); {
	case crlf > 0 && crlf == lf:
		return ", with CRLF line terminators"
	case crlf > 0:
		return ", with CRLF, LF line terminators"
	case lf == 0:
		return ", with no line terminators"
	}
	return ""
}
