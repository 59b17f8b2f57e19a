package archive

import (
	"bufio"
	"errors"
	"io"

	"github.com/ulikunitz/xz"
)

// xzDictionary bounds the dictionary of what is decompressed, which is memory: it is what xz -9 makes.
const xzDictionary = 64 << 20

var xzFormat = &format{
	name: "xz", suffix: ".xz", magic: "\xfd7zXZ\x00", says: &xzPhrases,
	reader: func(r io.Reader, take func(int64) error) (io.ReadCloser, error) {
		guard := newXZGuard(r, xzDictionary, take)
		// The decoder reads byte by byte.
		d, err := xz.ReaderConfig{DictCap: 1 << 12}.NewReader(bufio.NewReaderSize(guard, 64<<10))
		if err != nil {
			return nil, guard.blame(err)
		}
		return io.NopCloser(xzReader{d, guard}), nil
	},
	writer: func(w io.Writer, level int, take func(int64) error) (io.WriteCloser, error) {
		dictionary := xzLevels[min(level, len(xzLevels)-1)]
		if err := take(int64(dictionary) * xzMatcher); err != nil {
			return nil, err
		}
		return xz.WriterConfig{DictCap: dictionary}.NewWriter(w)
	},
}

// xzLevels are the dictionaries of the levels, which are those of xz, and end where a larger one costs more memory than it
// is worth; 0 is what xz takes by default.
var xzLevels = [...]int{8 << 20, 1 << 20, 2 << 20, 4 << 20, 4 << 20, 8 << 20}

// xzMatcher is how many bytes an encoder takes for each of the dictionary's: the byte itself, and its places in the table of
// hashes and in the list of those that have the same.
const xzMatcher = 8

var xzPhrases = phrases{
	exists:    "%s: File exists",
	suffixed:  "%s: File already has `%s' suffix, skipping",
	directory: "%s: Is a directory, skipping",
	unknown:   "%s: Filename has an unknown suffix, skipping",
	foreign:   "File format not recognized",
	truncated: "Unexpected end of input",
	corrupt:   "Compressed data is corrupt",
	stdin:     "(stdin)",
}

// errXZ is that a stream breaks the rules of the format.
var errXZ = errors.New("compressed data is corrupt")

// xzReader tells what is wrong with a stream from what went wrong in reading it.
type xzReader struct {
	decoder *xz.Reader
	guard   *xzGuard
}

// Read implements io.Reader.
func (r xzReader) Read(p []byte) (int, error) {
	n, err := r.decoder.Read(p)
	return n, r.guard.blame(err)
}
