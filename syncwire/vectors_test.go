package syncwire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

var updateFlag = flag.Bool("update", false, "write the vectors and the examples of PROTOCOL.md anew")

const vectorFile = "testdata/frames.txtar"

// Verdicts of vectors.
const (
	verdictOK          = "ok"          // decodes to what the vector says, and encodes to the same bytes
	verdictExtended    = "extended"    // decodes to what the vector says; fields of a later version are skipped
	verdictUnsupported = "unsupported" // is of a type that version 1 does not have
	verdictError       = "error"       // is a protocol error
)

type vector struct {
	name    string
	frame   []byte
	verdict string
}

// vectors returns a good frame of each type, and frames that are not as they should be.
func vectors(t *testing.T) []vector {
	var all []vector
	for _, m := range samples() {
		all = append(all, vector{m.frame().String(), mustFrame(t, m), verdictOK})
	}
	special := func(name string, m message, verdict string) {
		all = append(all, vector{name, mustFrame(t, m), verdict})
	}
	special("attach: nothing yet", &attach{Range: vfs.AllInos}, verdictOK)
	special("outcome: stale", &outcome{numbered{1}, vfs.Outcome{Stale: []vfs.Record{sampleGone}}}, verdictOK)
	special("outcome: missing", &outcome{numbered{1}, vfs.Outcome{Missing: sampleIDs}}, verdictOK)
	special("error: of the stream, of an unknown code", &failure{Code: 9999}, verdictOK)
	return append(all, broken()...)
}

func mustFrame(t testing.TB, m message) []byte {
	b, err := appendFrame(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// raw makes a frame of a type and a body, whatever is in it.
func raw(t frameType, parts ...any) []byte {
	body := []byte{}
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			body = append(body, byte(p))
		case string:
			body = append(body, p...)
		case []byte:
			body = append(body, p...)
		}
	}
	head := make([]byte, headerLen)
	putHeader(head, t, len(body))
	return append(head, body...)
}

func broken() []vector {
	big := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01} // 2^64-1
	key := func(kind, ino int, name string) []byte {
		return append([]byte{byte(kind), byte(ino), byte(len(name))}, name...)
	}
	id := make([]byte, chunk.IDSize)
	bad := func(name string, frame []byte) vector { return vector{name, frame, verdictError} }
	return []vector{
		{"ping: with fields of a later version", raw(framePing, 1, "later"), verdictExtended},
		{"opened: with fields of a later version", raw(frameOpened, 1, 2, 3), verdictExtended},
		{"a type that there is not", raw(0x7f, 1, 2, 3), verdictUnsupported},
		{"type 0", raw(0), verdictUnsupported},
		bad("a frame without its body", []byte{byte(framePing), 0, 0, 1}),
		bad("half a header", []byte{byte(framePing), 0}),
		bad("a body over the limit", []byte{byte(frameRecords), 0x40, 0, 1}),
		bad("ping: empty", raw(framePing)),
		bad("ping: an integer that does not end", raw(framePing, 0x80)),
		bad("ping: an integer that is longer than it need be", raw(framePing, 0x81, 0)),
		bad("ping: an integer of more than 64 bits", raw(framePing, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02")),
		bad("hello: of something else", raw(frameHello, "GET / HTTP/1.1")),
		bad("hello: a token over its limit",
			raw(frameHello, magic[:], 1, 1, 0, make([]byte, 32), 0, make([]byte, 16), 0x81, 0x20)),
		bad("hello: a workspace longer than the frame", raw(frameHello, magic[:], 1, 1, 0, make([]byte, 32), 200, 1)),
		bad("open: a session key that is cut off", raw(frameOpen, make([]byte, 31))),
		bad("where: a mode that there is not", raw(frameWhere, 1, 3, 0)),
		bad("get: a count of 2^64-1", raw(frameGet, 1, big)),
		bad("get: one key more than allowed", raw(frameGet, 1, 0x81, 2)),
		bad("get: a key of kind 0", raw(frameGet, 1, 1, key(0, 1, ""))),
		bad("get: a key of kind 4", raw(frameGet, 1, 1, key(4, 1, ""))),
		bad("get: inode 0", raw(frameGet, 1, 1, key(1, 0, ""))),
		bad("get: an inode with a name", raw(frameGet, 1, 1, key(1, 1, "a"))),
		bad("get: a dirent without a name", raw(frameGet, 1, 1, key(2, 1, ""))),
		bad("get: dot", raw(frameGet, 1, 1, key(2, 1, "."))),
		bad("get: dot dot", raw(frameGet, 1, 1, key(2, 1, ".."))),
		bad("get: a name with a slash", raw(frameGet, 1, 1, key(2, 1, "a/b"))),
		bad("get: a name with NUL", raw(frameGet, 1, 1, key(2, 1, "a\x00b"))),
		bad("get: a name of 256 bytes", raw(frameGet, 1, 1, 2, 1, 0x80, 2, strings.Repeat("n", 256))),
		bad("sums: an interval that ends before it begins", raw(frameSums, 1, 1, 2, 1)),
		bad("sums: one interval more than allowed", raw(frameSums, 1, 0x81, 2)),
		bad("lease: too many", raw(frameLease, 1, 0x81, 0x80, 0x40)),
		bad("missing: fewer ids than it says", raw(frameMissing, 1, 2, id)),
		bad("missing: one id more than allowed", raw(frameMissing, 1, 0x81, 0x20)),
		bad("attach: a flag that is 2", raw(frameAttach, make([]byte, 16), 0, 0, 0, big, 2)),
		bad("records: a count without records", raw(frameRecords, 5)),
		bad("records: one record more than allowed", raw(frameRecords, 0x81, 0x80, 1)),
		bad("records: a value that is too long", raw(frameRecords, 1, key(3, 1, "a"), 0, 0x82, 0x80, 4)),
		bad("records: a value that is cut off", raw(frameRecords, 1, key(3, 1, "a"), 0, 3, "v")),
		bad("update: more own pushes than allowed", raw(frameUpdate, make([]byte, 16), 1, 1, make([]byte, 32), 65)),
		bad("push: too many chunks", raw(framePush, 1, make([]byte, 16), 0x81, 0x20, 0, 0)),
		bad("push: too many records", raw(framePush, 1, make([]byte, 16), 0, 0x81, 0x80, 4, 0)),
		bad("push: too many bytes", raw(framePush, 1, make([]byte, 16), 0, 0, 0x81, 0x80, 0x80, 8)),
		bad("changes: without a base", raw(frameChanges, 1, key(2, 1, "a"), make([]byte, 15))),
		bad("outcome: more stale records than allowed",
			raw(frameOutcome, 1, make([]byte, 16), 1, 1, make([]byte, 32), 0, 0x81, 8)),
		bad("fetch: one id more than allowed", raw(frameFetch, 1, 0x81, 0x20)),
		bad("chunk: plain bytes over the limit", raw(frameChunk, id, 1, 0x81, 0x80, 0x20, 0)),
		bad("chunk: stored bytes over the limit", raw(frameChunk, id, 1, 1, 0x81, 0x80, 0x20)),
		bad("chunk: cut off", raw(frameChunk, id, 1, 9, 9, "12345678")),
		bad("store: too many chunks", raw(frameStore, 1, 0x81, 0x20)),
	}
}

// judge reaches a verdict on a frame as a receiver does, and puts a message into words.
func judge(frame []byte) (verdict, says string) {
	f, err := DecodeFrame(frame)
	switch {
	case errors.Is(err, vfs.ErrNotSupported):
		return verdictUnsupported, ""
	case errors.Is(err, ErrProtocol), errors.Is(err, io.ErrUnexpectedEOF):
		return verdictError, ""
	case err != nil:
		panic(err)
	}
	verdict = verdictExtended
	if again, err := f.Append(nil); err == nil && bytes.Equal(again, frame) {
		verdict = verdictOK
	}
	return verdict, f.Type() + "\n" + f.Fields()
}

// wrapped is b in lines that fit on a page.
func wrapped(b []byte) string {
	var lines []string
	for part := range slices.Chunk(b, 48) {
		lines = append(lines, hex.EncodeToString(part))
	}
	return strings.Join(lines, "\n") + "\n"
}

// The vectors are what the code makes of its samples, and every frame in them gets its verdict.
func TestVectors(t *testing.T) {
	made := new(txtar.Archive)
	made.Comment = []byte("Frames, each with a verdict and, when it decodes, its type and fields. vectors_test.go says what\n" +
		"the verdicts mean.\n\n")
	for _, v := range vectors(t) {
		verdict, says := judge(v.frame)
		if verdict != v.verdict {
			t.Errorf("%s: verdict %s, want %s", v.name, verdict, v.verdict)
		}
		text := wrapped(v.frame) + "verdict " + v.verdict + "\n" + says
		made.Files = append(made.Files, txtar.File{Name: v.name, Data: []byte(text)})
	}
	want := txtar.Format(made)
	if *updateFlag {
		if err := os.WriteFile(vectorFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(vectorFile); err != nil || !bytes.Equal(have, want) {
		t.Errorf("%s is not what the code says (%v); -update writes it anew, which changes the protocol", vectorFile, err)
	}
}

var (
	exampleBlock = regexp.MustCompile("(?s)```frame\n(.*?)```\n")
	messageTitle = regexp.MustCompile(`(?m)^#### (\w+) \(0x([0-9a-f]{2})\)\n((?s:.*?))(?:\n#|\z)`)
	tableRow     = regexp.MustCompile(`(?m)^\| ([^|]*?) \| .* \|$`)
	errorRow     = regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]*?) \|$`)
	itemIndex    = regexp.MustCompile(`\[\d+\]`)
)

// examples are the messages that PROTOCOL.md shows.
func examples() []message {
	show := []frameType{frameHello, framePing, frameAttach, frameRecords, framePush, frameChanges}
	return slices.DeleteFunc(samples(), func(m message) bool { return !slices.Contains(show, m.frame()) })
}

func TestProtocolExamples(t *testing.T) {
	doc, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	if *updateFlag {
		at := bytes.Index(doc, []byte("```frame\n"))
		var b bytes.Buffer
		for _, m := range examples() {
			fmt.Fprintf(&b, "```frame\n%s\n%s```\n\n", wrapped(mustFrame(t, m))+m.frame().String(), inWords(m))
		}
		doc = append(doc[:at:at], bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
		if err := os.WriteFile("PROTOCOL.md", doc, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	blocks := exampleBlock.FindAllSubmatch(doc, -1)
	if len(blocks) != len(examples()) {
		t.Fatalf("%d examples, want %d", len(blocks), len(examples()))
	}
	for _, block := range blocks {
		lines := strings.Split(string(block[1]), "\n")
		words := slices.IndexFunc(lines, func(l string) bool { _, err := hex.DecodeString(l); return err != nil })
		frame, err := hex.DecodeString(strings.Join(lines[:words], ""))
		if err != nil {
			t.Fatal(err)
		}
		if verdict, says := judge(frame); verdict != verdictOK || says != strings.Join(lines[words:], "\n") {
			t.Errorf("example %x: %s\n%s", frame, verdict, says)
		}
	}
}

// The tables of PROTOCOL.md have the fields that the code sends, in that order.
func TestProtocolTables(t *testing.T) {
	doc, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	tables := make(map[string][]string)
	for rest := doc; ; {
		m := messageTitle.FindSubmatchIndex(rest)
		if m == nil {
			break
		}
		title := string(rest[m[2]:m[3]]) + " 0x" + string(rest[m[4]:m[5]])
		tables[title] = tableFields(string(rest[m[6]:m[7]]))
		rest = rest[m[7]:]
	}
	for _, m := range samples() {
		if o, ok := m.(*outcome); ok {
			o.Outcome.Stale, o.Outcome.Missing = sampleRecords, sampleIDs
		}
		title := fmt.Sprintf("%v 0x%02x", m.frame(), uint8(m.frame()))
		have, ok := tables[title]
		if want := codeFields(m); !ok || !slices.Equal(have, want) {
			t.Errorf("%s (%t): the table has %q, the code %q", title, ok, have, want)
		}
		delete(tables, title)
	}
	for title := range tables {
		t.Errorf("%s: no such message", title)
	}
}

func tableFields(section string) (fields []string) {
	for _, row := range tableRow.FindAllStringSubmatch(section, -1) {
		if row[1] != "field" && !strings.HasPrefix(row[1], "---") {
			fields = append(fields, strings.Split(row[1], ", ")...)
		}
	}
	return fields
}

func codeFields(m message) (fields []string) {
	for line := range strings.Lines(inWords(m)) {
		name := itemIndex.ReplaceAllString(line[:nameEnd(line)], "")
		if !slices.Contains(fields, name) {
			fields = append(fields, name)
		}
	}
	return fields
}

// nameEnd finds where the name of a field ends in its line: before the value, which has no spaces unless it is quoted.
func nameEnd(line string) int {
	if i := strings.Index(line, ` "`); i >= 0 {
		return i
	}
	return strings.LastIndexByte(line, ' ')
}

// Every sentinel has a number, and PROTOCOL.md lists it.
func TestErrorCodes(t *testing.T) {
	doc, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]string)
	_, section, _ := strings.Cut(string(doc), "## 10. Errors")
	section, _, _ = strings.Cut(section, "## 11.")
	for _, row := range errorRow.FindAllStringSubmatch(section, -1) {
		listed[row[1]] = row[2]
	}
	all := append(vfs.Errors(), Errors()...)
	for _, s := range all {
		wrapped := fmt.Errorf("push: %w", s)
		c := codeOf(wrapped)
		text, ok := listed[fmt.Sprint(c)]
		if c == codeOther || !ok {
			t.Errorf("%v has code %d, listed as %q", s, c, text)
		}
		if got := errorFrame(1, wrapped).err(); !errors.Is(got, s) {
			t.Errorf("%v arrives as %v", s, got)
		}
		for _, other := range all {
			if other != s && codes[other] == codes[s] {
				t.Errorf("%v and %v have one code", s, other)
			}
		}
	}
	if len(listed) != len(all)+1 || len(codes) != len(all) {
		t.Errorf("%d codes listed, %d in the table, %d sentinels", len(listed), len(codes), len(all))
	}
	long := errorFrame(0, errors.New(strings.Repeat("é", maxErrorText)))
	if len(long.Text) > maxErrorText || long.err().(*Error).Unwrap() != nil {
		t.Errorf("a long error: %d bytes", len(long.Text))
	}
}
