package casstore

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// TestFormatExamples decodes the examples of FORMAT.md, compares what they say with what the table beside them says,
// and encodes them again.
func TestFormatExamples(t *testing.T) {
	doc, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(doc), "## Examples\n")
	if !ok {
		t.Fatal("FORMAT.md has no examples")
	}
	_, block, _ := strings.Cut(section, "```\n")
	block, table, _ := strings.Cut(block, "```\n")
	var says []string
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			says = append(says, strings.TrimSpace(cells[1])+": "+strings.TrimSpace(cells[2]))
		}
	}
	says = says[2:] // the heading
	n := 0
	for line := range strings.Lines(block) {
		kind, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		text, again, err := readExample(kind, b)
		if err != nil {
			t.Errorf("%s %x: %v", kind, b, err)
			continue
		}
		if !bytes.Equal(again, b) {
			t.Errorf("%s %x is encoded again as %x", kind, b, again)
		}
		if got := kind + ": " + text; got != says[n] {
			t.Errorf("the example says %q, the table %q", got, says[n])
		}
		n++
	}
	if n != len(says) {
		t.Errorf("%d examples, %d lines in the table", n, len(says))
	}
}

// readExample decodes an example, and returns what it says and how it is encoded again.
func readExample(kind string, b []byte) (text string, again []byte, err error) {
	switch kind {
	case "encryption":
		check, err := decodeEncryption(b)
		var key [KeyLen]byte
		for i := range key {
			key[i] = byte(i)
		}
		k, keyErr := deriveKeys(key[:])
		text := fmt.Sprintf("version %d, of the key of bytes 0 to 31: %t", encryptionVersion, bytes.Equal(check, k.check))
		return text, encodeEncryption(check), errors.Join(err, keyErr)
	case "format":
		r, err := decodeFormat(b)
		return fmt.Sprintf("version %d, epoch %x", r.version, r.epoch), r.encode(), err
	case "head":
		r, err := decodeHead(b)
		return fmt.Sprintf("revision %d, inodes from %d, workspaces from %d", r.rev, r.ino, r.nextWS), r.encode(), err
	case "workspace":
		r, err := decodeWorkspace(b)
		return fmt.Sprintf("%s, created %d", r.name, r.created), r.encode(), err
	case "revision":
		r, err := decodeRevision(b)
		text := fmt.Sprintf("%v, at %d", r.kind, r.time)
		for _, p := range r.parts {
			text += fmt.Sprintf(", %d records of workspace %d", p.records, p.ws)
		}
		return text, r.encode(), err
	case "history":
		r, err := decodeHistory(b)
		return fmt.Sprintf("%v, from revision %d", time.Duration(r.keep), r.start), r.encode(), err
	case "fork":
		r, err := decodeFork(b)
		text := fmt.Sprintf("of %d at %d: over", r.parent.ws, r.parent.rev)
		for i, o := range r.layers {
			text += fmt.Sprintf("%s %d at %d", strings.Repeat(",", min(i, 1)), o.ws, o.rev)
			if o.of > 0 {
				text += fmt.Sprintf(" of %d", o.of)
			}
		}
		return text, r.encode(), err
	case "merge":
		r, err := decodeMerge(b)
		return fmt.Sprintf("of revision %d, at %d", r.rev, r.at), r.encode(), err
	case "snapshot":
		r, err := decodeSnapshot(b)
		return fmt.Sprintf("of revision %d, created %d: %s", r.rev, r.created, r.message), r.encode(), err
	case "window":
		v, err := uvarints(b, 1)
		return fmt.Sprintf("from revision %d", v[0]), uvarint(v[0]), err
	case "lease":
		l, err := decodeLease(keyOfNode(keyLease, 1, 100), b)
		return fmt.Sprintf("from %d to %d to %x", l.First, l.Last, l.peer), l.encode(), err
	case "push":
		p, err := decodeAppliedPush(b)
		return fmt.Sprintf("%x, of sum %x…, from revision %d to %d, digest %v", p.id, p.sum[:4], p.prev, p.rev, p.digest),
			p.encode(), err
	case "standing":
		r, err := decodeStanding(b)
		return fmt.Sprintf("at %d: revision %d, none between %d and %d, digest %v", r.at, r.rev, r.floor, r.next, r.digest),
			r.encode(), err
	case "journal":
		e, err := decodeEntry(b)
		text := fmt.Sprintf("layer, size %d, at %d", e.size, e.mtime)
		switch e.kind {
		case entryData:
			text = fmt.Sprintf("%d bytes at %d", e.n, e.off)
		case entryZeros:
			text = fmt.Sprintf("%d zeros at %d", e.n, e.off)
		}
		return text, e.encode(), err
	case "end", "atime":
		v, err := uvarints(b, 1)
		if err != nil {
			return "", nil, err
		}
		if kind == "atime" {
			return fmt.Sprint(int64(unzigzag(v[0]))), uvarint(v[0]), nil
		}
		return fmt.Sprint(v[0]), uvarint(v[0]), nil
	case "inode":
		r, err := vfs.DecodeInode(b)
		return fmt.Sprintf("type %d, mode %o, nlink %d, owner %d:%d, parent %d, size %d, xattrs %d, body %d of %d bytes",
			r.Type, r.Mode, r.Nlink, r.UID, r.GID, r.Parent, r.Size, r.Xattrs, r.Body.Kind, len(r.Body.Data)), r.Append(nil), err
	case "dirent":
		r, err := vfs.DecodeDirent(b)
		return fmt.Sprintf("inode %d of type %d", r.Ino, r.Type), r.Append(nil), err
	}
	return "", nil, fmt.Errorf("unknown kind %q", kind)
}
