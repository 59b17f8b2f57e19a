package text

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var wcOptions = getopt.New("clLmw", "bytes=c", "chars=m", "lines=l", "max-line-length=L", "words=w", "files0-from:",
	"total:")

// counts are what wc counts, in the order in which it prints them: lines, words, characters, bytes, longest line.
type counts [5]int64

const wcOrder = "lwmcL"

func wc(ctx context.Context, c *tool.Call) error {
	options, files, err := c.Options(wcOptions, 1)
	if err != nil {
		return err
	}
	var want [5]bool
	var from []string
	n, given := 0, false
	for _, o := range options {
		if o.Name == "files0-from" {
			data, err := c.ReadFile(ctx, o.Value)
			if err != nil {
				return c.FaultAt(ctx, o.Value, err)
			}
			if len(files) > 0 {
				return files0Operand(c, 1, files[0])
			}
			from, given = strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00"), true
			if len(data) == 0 {
				return nil
			}
		}
		if i := strings.Index(wcOrder, o.Name); i >= 0 && len(o.Name) == 1 && !want[i] {
			want[i] = true
			n++
		}
	}
	if n == 0 {
		want, n = [5]bool{true, true, false, true, false}, 3
	}
	if given {
		return wcFiles(ctx, c, from, want, 1) // GNU's does not look at files that it has but the names of
	}
	return wcFiles(ctx, c, files, want, wcWidth(ctx, c, files, n))
}

// files0Operand says that names are in a file or are operands, not both.
func files0Operand(c *tool.Call, status int, name string) error {
	c.Say("extra operand '%s'", name)
	fmt.Fprintf(c.Stderr, "file operands cannot be combined with --files0-from\nTry '%s --help' for more information.\n", c.Args[0])
	return tool.Exit(status)
}

func wcFiles(ctx context.Context, c *tool.Call, files []string, want [5]bool, width int) error {
	var total counts
	err := c.Each(ctx, files, func(name string, in *tool.Input) error {
		n, err := countIn(in, want)
		if len(files) == 0 {
			name = ""
		}
		if err == nil || tool.IsDir(err) {
			if err != nil {
				if err = c.FaultAt(ctx, name, err); err != nil {
					return err
				}
			}
			printCounts(c, n, want, width, name)
		}
		for i := range 4 {
			total[i] += n[i]
		}
		total[4] = max(total[4], n[4])
		return err
	})
	if len(files) > 1 && err == nil {
		printCounts(c, total, want, width, "total")
	}
	return err
}

// wcWidth is GNU's rule: as wide as the sum of the files' sizes, 7 at least when one is no regular file, 1 for one
// number of one file.
func wcWidth(ctx context.Context, c *tool.Call, files []string, n int) int {
	if len(files) <= 1 && n == 1 {
		return 1
	}
	least, sum := 1, uint64(0)
	if len(files) == 0 {
		files = []string{"-"}
	}
	for _, name := range files {
		var a vfs.Attr
		var err error
		if name == "-" {
			a = standardAttr(c.Stdin)
		} else {
			a, err = c.FS.Stat(ctx, name)
		}
		switch {
		case err == nil && a.Type == vfs.TypeRegular:
			sum += a.Size
		case err == nil:
			least = 7
		}
	}
	return max(least, len(strconv.FormatUint(sum, 10)))
}

// standardAttr tells whether standard input is a file, as what can be sought is, and its size.
func standardAttr(in io.Reader) vfs.Attr {
	if s, ok := in.(io.Seeker); ok {
		at, err := s.Seek(0, io.SeekCurrent)
		if err == nil {
			size, _ := s.Seek(0, io.SeekEnd)
			_, _ = s.Seek(at, io.SeekStart)
			return vfs.Attr{Type: vfs.TypeRegular, Size: uint64(max(size, 0))}
		}
	}
	return vfs.Attr{}
}

func printCounts(c *tool.Call, n counts, want [5]bool, width int, name string) {
	separator := ""
	for i, v := range n {
		if want[i] {
			fmt.Fprintf(c.Out, "%s%*d", separator, width, v)
			separator = " "
		}
	}
	if name != "" {
		fmt.Fprintf(c.Out, " %s", name)
	}
	fmt.Fprintln(c.Out)
}

func countIn(in io.Reader, want [5]bool) (n counts, err error) {
	buf := make([]byte, 64<<10)
	s := scanner{n: &n, columns: want[4]}
	for {
		got, err := in.Read(buf[s.rest:])
		block := buf[:s.rest+got]
		n[3] += int64(got)
		if want[1] || want[2] || want[4] {
			s.rest = copy(buf, s.scan(block, err != nil))
		} else {
			n[0] += int64(bytes.Count(block, []byte{'\n'}))
		}
		if err != nil {
			n[4] = max(n[4], s.column)
			return n, notEOF(err)
		}
	}
}

// scanner counts words, characters and columns over the blocks of a stream.
type scanner struct {
	n       *counts
	column  int64
	word    bool // inside of one
	columns bool // the longest line is wanted
	rest    int  // bytes of an unfinished character at the end of the last block
}

// scan returns what may be the beginning of a character that the next block continues.
func (s *scanner) scan(block []byte, last bool) []byte {
	for len(block) > 0 {
		if !s.columns {
			if block = s.plain(block); len(block) == 0 {
				return nil
			}
		}
		r, size := rune(block[0]), 1
		if r >= utf8.RuneSelf {
			if !last && !utf8.FullRune(block) {
				return block
			}
			r, size = utf8.DecodeRune(block)
		}
		block = block[size:]
		if r != utf8.RuneError || size > 1 {
			s.n[2]++
		}
		s.char(r)
	}
	return nil
}

// plain counts the ASCII characters at the start of block, without columns, and returns what follows them.
func (s *scanner) plain(block []byte) []byte {
	word, words, lines := s.word, int64(0), int64(0)
	i := 0
	for ; i < len(block) && block[i] < utf8.RuneSelf; i++ {
		switch c := block[i]; {
		case c > ' ' && c != 0x7f:
			if !word {
				words++
			}
			word = true
		case c == '\n':
			lines++
			word = false
		case c == ' ' || c >= '\t' && c <= '\r':
			word = false
		}
	}
	s.n[0] += lines
	s.n[1] += words
	s.n[2] += int64(i)
	s.word = word
	return block[i:]
}

func (s *scanner) char(r rune) {
	switch r {
	case '\n', '\r', '\f':
		s.n[4] = max(s.n[4], s.column)
		s.column = 0
		if r == '\n' {
			s.n[0]++
		}
	case '\t':
		s.column += 8 - s.column%8
	case ' ', '\v':
		if r == ' ' {
			s.column++
		}
	default:
		if !unicode.IsSpace(r) {
			if unicode.IsPrint(r) {
				s.column += int64(runeWidth(r))
				if !s.word {
					s.n[1]++
				}
				s.word = true
			}
			return
		}
		s.column++
	}
	s.word = false
}

// runeWidth is wcwidth(3)'s: two columns for East Asian wide characters and emoji, none for marks.
func runeWidth(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1100 && (r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 ||
		r >= 0xf900 && r <= 0xfaff || r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 ||
		r >= 0xffe0 && r <= 0xffe6 || r >= 0x1f300 && r <= 0x1f64f || r >= 0x1f900 && r <= 0x1f9ff ||
		r >= 0x20000 && r <= 0x3fffd):
		return 2
	}
	return 1
}
