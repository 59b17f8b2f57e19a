package encode

import (
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strings"

	sha256simd "github.com/minio/sha256-simd"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// sum is a command that prints checksums of one kind.
type sum struct {
	tag string // of --tag lines
	new func() hash.Hash
}

var hashes = map[string]sum{
	"md5sum": {"MD5", md5.New}, "sha1sum": {"SHA1", sha1.New}, "sha224sum": {"SHA224", sha256.New224},
	"sha256sum": {"SHA256", sha256simd.New}, "sha384sum": {"SHA384", sha512.New384}, "sha512sum": {"SHA512", sha512.New},
}

var sumOptions = getopt.New("bctwz", "binary=b", "check=c", "tag", "text=t", "zero=z", "ignore-missing", "quiet", "status",
	"strict", "warn=w")

// summer is what one run of a checksum command does.
type summer struct {
	*tool.Call
	ctx                                        context.Context
	sum                                        sum
	binary, tag, quiet, status, strict, ignore bool
	end                                        string
	failed, unreadable, malformed, good        int
}

func (s sum) body(ctx context.Context, c *tool.Call) error {
	options, names, err := c.Options(sumOptions, 1)
	if err != nil {
		return err
	}
	k := &summer{Call: c, ctx: ctx, sum: s, end: "\n"}
	check := false
	for _, o := range options {
		switch o.Name {
		case "b":
			k.binary = true
		case "c":
			check = true
		case "tag":
			k.tag = true
		case "z":
			k.end = "\x00"
		case "quiet":
			k.quiet = true
		case "status":
			k.status = true
		case "strict":
			k.strict = true
		case "ignore-missing":
			k.ignore = true
		}
	}
	if check {
		return k.check(names)
	}
	return c.Each(ctx, names, func(name string, in *tool.Input) error {
		digest, err := k.digest(in)
		if err != nil {
			return err
		}
		mark := " "
		if k.binary {
			mark = "*"
		}
		if k.tag {
			fmt.Fprintf(c.Out, "%s (%s) = %s%s", s.tag, name, digest, k.end)
			return nil
		}
		escape := ""
		if strings.ContainsAny(name, "\\\n") && k.end == "\n" {
			escape = `\`
			name = strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(name)
		}
		_, err = fmt.Fprintf(c.Out, "%s%s %s%s%s", escape, digest, mark, name, k.end)
		return err
	})
}

func (k *summer) digest(in io.Reader) (string, error) {
	h := k.sum.new()
	if _, err := io.CopyBuffer(h, in, make([]byte, 256<<10)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// check compares files with the sums that a list gives for them.
func (k *summer) check(lists []string) error {
	err := k.Each(k.ctx, lists, func(list string, in *tool.Input) error {
		k.failed, k.unreadable, k.malformed, k.good = 0, 0, 0, 0
		lines := k.Lines(in)
		for line, ok := lines.Next(); ok; line, ok = lines.Next() {
			if err := k.line(string(line)); err != nil {
				return err
			}
		}
		k.report(list)
		return lines.Err()
	})
	return err
}

func (k *summer) parse(line string) (digest, name string, ok bool) {
	size := 2 * k.sum.new().Size()
	if rest, tagged := strings.CutPrefix(line, k.sum.tag+" ("); tagged {
		name, digest, ok = strings.Cut(rest, ") = ")
		return digest, name, ok && len(digest) == size
	}
	escaped := strings.HasPrefix(line, `\`)
	line = strings.TrimPrefix(line, `\`)
	if len(line) < size+3 || line[size] != ' ' {
		return "", "", false
	}
	name = line[size+2:]
	if escaped {
		name = strings.NewReplacer(`\\`, `\`, `\n`, "\n").Replace(name)
	}
	_, err := hex.DecodeString(line[:size])
	return strings.ToLower(line[:size]), name, err == nil
}

func (k *summer) line(line string) error {
	if line == "" || line[0] == '#' {
		return nil
	}
	want, name, ok := k.parse(line)
	if !ok {
		k.malformed++
		return nil
	}
	in, err := k.Open(k.ctx, name)
	if err == nil {
		var got string
		got, err = k.digest(in)
		_ = in.Close()
		if err == nil {
			k.verdict(name, got == want)
			return nil
		}
	}
	if tool.Ends(k.ctx, err) {
		return err
	}
	if k.ignore && command.Reason(err) == "No such file or directory" {
		return nil
	}
	k.unreadable++
	k.Say("%s: %s", name, command.Reason(err))
	if !k.status {
		fmt.Fprintf(k.Out, "%s: FAILED open or read\n", name)
	}
	return nil
}

func (k *summer) verdict(name string, same bool) {
	word := "OK"
	if k.good++; !same {
		k.failed++
		word = "FAILED"
	}
	if !k.status && !(same && k.quiet) {
		fmt.Fprintf(k.Out, "%s: %s\n", name, word)
	}
}

func (k *summer) report(list string) {
	warn := func(n int, one, many string) {
		if n == 0 || k.status {
			return
		}
		words := many
		if n == 1 {
			words = one
		}
		k.Say("WARNING: %d %s", n, words)
	}
	if k.good+k.unreadable == 0 {
		k.Status = 1
		if k.malformed > 0 || !k.ignore {
			k.Say("%s: no properly formatted checksum lines found", list)
		} else {
			k.Say("%s: no file was verified", list)
		}
		return
	}
	warn(k.malformed, "line is improperly formatted", "lines are improperly formatted")
	warn(k.unreadable, "listed file could not be read", "listed files could not be read")
	warn(k.failed, "computed checksum did NOT match", "computed checksums did NOT match")
	if k.failed+k.unreadable > 0 || k.strict && k.malformed > 0 {
		k.Status = 1
	}
}
