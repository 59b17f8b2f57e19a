package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// typeWords are the names of types in JSON and on the command line, and their letters in ls -l and find --type.
var typeWords = map[vfs.Type]struct{ word, letter string }{
	vfs.TypeRegular:  {"file", "f"},
	vfs.TypeDir:      {"dir", "d"},
	vfs.TypeSymlink:  {"symlink", "l"},
	vfs.TypeFIFO:     {"fifo", "p"},
	vfs.TypeSocket:   {"socket", "s"},
	vfs.TypeCharDev:  {"char", "c"},
	vfs.TypeBlockDev: {"block", "b"},
}

// nodeJSON is a node as ls and find print it.
type nodeJSON struct {
	Path       string    `json:"path"`
	PathBase64 string    `json:"path_base64,omitempty"` // when Path is not UTF-8
	Type       string    `json:"type"`
	Mode       string    `json:"mode"` // octal
	Nlink      uint32    `json:"nlink"`
	UID        uint32    `json:"uid"`
	GID        uint32    `json:"gid"`
	Size       uint64    `json:"size"`
	Mtime      time.Time `json:"mtime"`
	Ino        vfs.Ino   `json:"ino"`
	Rdev       uint32    `json:"rdev,omitempty"`
	Target     string    `json:"target,omitempty"`
}

func jsonOf(path string, a vfs.Attr, target string) nodeJSON {
	return nodeJSON{
		Path: strings.ToValidUTF8(path, "\uFFFD"), PathBase64: base64IfNeeded(path), Type: typeWords[a.Type].word,
		Mode: fmt.Sprintf("%04o", a.Mode), Nlink: a.Nlink, UID: a.UID, GID: a.GID, Size: a.Size, Mtime: a.Mtime.Go(),
		Ino: a.Ino, Rdev: a.Rdev, Target: strings.ToValidUTF8(target, "\uFFFD"),
	}
}

func base64IfNeeded(s string) string {
	if utf8.ValidString(s) {
		return ""
	}
	return base64.StdEncoding.EncodeToString([]byte(s))
}

// namesJSON are names that people can read and, when one of them is not UTF-8, the bytes of all in base64.
func namesJSON(names []string) (readable, base64s []string) {
	bytes := false
	for _, name := range names {
		readable = append(readable, strings.ToValidUTF8(name, "\uFFFD"))
		base64s = append(base64s, base64.StdEncoding.EncodeToString([]byte(name)))
		bytes = bytes || !utf8.ValidString(name)
	}
	if !bytes {
		base64s = nil
	}
	return readable, base64s
}

// printJSON prints one object on one line.
func (p *program) printJSON(v any) error {
	e := json.NewEncoder(p.stdout)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// shown is a name for a terminal, where control characters could do harm; elsewhere names are bytes as they are.
func (p *program) shown(name string) string {
	if !p.screen || strings.IndexFunc(name, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) < 0 {
		return name
	}
	return strconv.Quote(name)
}

// modeString is the ten characters of ls -l.
func modeString(a vfs.Attr) string {
	b := []byte(typeWords[a.Type].letter + "rwxrwxrwx")
	if a.Type == vfs.TypeRegular {
		b[0] = '-'
	}
	for i := range 9 {
		if a.Mode&(1<<(8-i)) == 0 {
			b[1+i] = '-'
		}
	}
	special := func(bit uint32, at int, with, without byte) {
		if a.Mode&bit == 0 {
			return
		}
		if b[at] == 'x' {
			b[at] = with
		} else {
			b[at] = without
		}
	}
	special(vfs.ModeSetUID, 3, 's', 'S')
	special(vfs.ModeSetGID, 6, 's', 'S')
	special(vfs.ModeSticky, 9, 't', 'T')
	return string(b)
}
