package encode

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var cksumOptions = getopt.New("")

// cksumTable is of the CRC that POSIX gives cksum: polynomial 0x04c11db7, the highest bit first.
var cksumTable = func() (t [256]uint32) {
	for i := range t {
		crc := uint32(i) << 24
		for range 8 {
			if crc&(1<<31) != 0 {
				crc = crc<<1 ^ 0x04c11db7
			} else {
				crc <<= 1
			}
		}
		t[i] = crc
	}
	return t
}()

// cksum prints a checksum and the length of files.
func cksum(ctx context.Context, c *tool.Call) error {
	_, names, err := c.Options(cksumOptions, 1)
	if err != nil {
		return err
	}
	named := len(names) > 0
	return c.Each(ctx, names, func(name string, in *tool.Input) error {
		crc, size, err := cksumOf(in)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.Out, "%d %d", crc, size)
		if named {
			fmt.Fprintf(c.Out, " %s", name)
		}
		return c.Out.WriteByte('\n')
	})
}

func cksumOf(in io.Reader) (crc uint32, size uint64, err error) {
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		for _, b := range buf[:n] {
			crc = crc<<8 ^ cksumTable[byte(crc>>24)^b]
		}
		size += uint64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, 0, err
		}
	}
	for rest := size; rest > 0; rest >>= 8 { // its length follows it, the lowest byte first
		crc = crc<<8 ^ cksumTable[byte(crc>>24)^byte(rest)]
	}
	return ^crc, size, nil
}
