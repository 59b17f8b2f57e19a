package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var xargsOptions = getopt.New("+0a:d:E:e::I:i::L:l::n:oP:prs:tx", "null=0", "arg-file:=a", "delimiter:=d", "eof::=e",
	"replace::=i", "max-lines::=l", "max-args:=n", "max-procs:=P", "interactive=p", "no-run-if-empty=r", "max-chars:=s",
	"verbose=t", "exit=x", "open-tty=o", "process-slot-var:", "show-limits")

// maxChars bounds one command line, as GNU's xargs does by default.
const maxChars = 128 << 10

// batcher is what one xargs does. Commands run one after the other, whatever -P says: their output stays in order, and
// they share the script's bound on work anyway.
type batcher struct {
	*tool.Call
	ctx     context.Context
	command []string
	replace string
	delim   int // -1 for blanks and quotes
	perLine int // lines for one command
	perArgs int
	chars   int
	eof     string
	hasEOF  bool
	empty   bool // run once even without arguments
	trace   bool
	ask     bool
	exact   bool

	args  []string
	size  int
	lines int
	ran   bool
}

func xargs(ctx context.Context, c *tool.Call) error {
	options, operands, err := c.Options(xargsOptions, 1)
	if err != nil {
		return err
	}
	b := &batcher{Call: c, ctx: ctx, command: operands, delim: -1, chars: maxChars, empty: true}
	from := "-"
	for _, o := range options {
		if o.Name == "a" {
			from = o.Value
		}
		if err := b.set(o); err != nil {
			return err
		}
	}
	if len(b.command) == 0 {
		b.command = []string{"echo"}
	}
	in, err := c.Open(ctx, from)
	if err != nil {
		return c.Die(1, "Cannot open input file '%s': %s", from, command.Reason(err))
	}
	defer in.Close()
	if err := b.read(in); err != nil {
		return err
	}
	if len(b.args) > 0 || !b.ran && b.empty && b.replace == "" {
		return b.run()
	}
	return nil
}

func (b *batcher) set(o getopt.Option) error {
	number := func(to *int) error { return b.number(to, o) }
	ignored := 0
	switch o.Name {
	case "0":
		b.delim = 0
	case "d":
		delim, err := b.delimiter(o.Value)
		if err != nil {
			return err
		}
		b.delim = delim
	case "E", "e":
		b.eof, b.hasEOF = o.Value, o.Value != ""
	case "I", "i":
		b.replace, b.perLine = o.Value, 1
		if o.Value == "" {
			b.replace = "{}"
		}
	case "l":
		if b.perLine = 1; o.Given {
			return number(&b.perLine)
		}
	case "L":
		return number(&b.perLine)
	case "n":
		return number(&b.perArgs)
	case "s":
		return number(&b.chars)
	case "P":
		return number(&ignored)
	case "r":
		b.empty = false
	case "t":
		b.trace = true
	case "p":
		b.ask, b.trace = true, true
	case "x":
		b.exact = true
	}
	return nil
}

// number reads the value of an option that counts something. What is too small for -s only makes it 1, so that nothing
// fits.
func (b *batcher) number(to *int, o getopt.Option) error {
	n, err := strconv.ParseInt(strings.TrimSpace(o.Value), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return b.Usage(1, "invalid number \"%s\" for -%s option", o.Value, o.Name)
	}
	low := int64(1)
	if o.Name == "P" {
		low = 0
	}
	if n < low {
		if o.Name != "s" {
			return b.Usage(1, "value %s for -%s option should be >= %d", o.Value, o.Name, low)
		}
		b.Say("value %s for -%s option should be >= %d", o.Value, o.Name, low)
		n = low
	}
	*to = int(min(n, math.MaxInt32))
	return nil
}

// delimiter reads the value of -d: a character or an escape sequence.
func (b *batcher) delimiter(text string) (int, error) {
	switch {
	case len(text) == 1:
		return int(text[0]), nil
	case !strings.HasPrefix(text, `\`):
		return 0, b.Die(1, "Invalid input delimiter specification %s: the delimiter must be either a single character or an escape "+
			"sequence starting with \\.", text)
	}
	if i := strings.IndexByte(`abfnrtv\`, text[1]); i >= 0 && len(text) == 2 {
		return int("\a\b\f\n\r\t\v\\"[i]), nil
	}
	digits, base := text[1:], 8
	if text[1] == 'x' {
		digits, base = "0"+text[2:], 16
	}
	n, err := strconv.ParseUint(digits, base, 8)
	switch {
	case errors.Is(err, strconv.ErrRange) && base == 16:
		return 0, b.Die(1, "Invalid escape sequence %s in input delimiter specification; character values must not exceed %x.", text, 255)
	case errors.Is(err, strconv.ErrRange):
		return 0, b.Die(1, "Invalid escape sequence %s in input delimiter specification; character values must not exceed %o.", text, 255)
	case err != nil:
		return 0, b.Die(1, "Invalid escape sequence %s in input delimiter specification.", text)
	}
	return int(n), nil
}

func (b *batcher) read(in io.Reader) error {
	if b.delim >= 0 {
		records := b.Records(in, byte(b.delim))
		for item, ok := records.Next(); ok; item, ok = records.Next() {
			if err := b.line([]string{string(item)}); err != nil {
				return err
			}
		}
		return records.Err()
	}
	lines := b.Lines(in)
	var words []string
	more := false // the line before ended in a blank: this one continues it
	for line, ok := lines.Next(); ok; line, ok = lines.Next() {
		found, end, err := b.split(line)
		if err != nil {
			if len(found) > 0 {
				b.args = append(b.args, found...)
				if runErr := b.run(); runErr != nil {
					return runErr
				}
			}
			return err
		}
		words = append(words, found...)
		more = b.replace == "" && b.perLine > 0 && bytes.HasSuffix(line, []byte(" "))
		if len(words) == 0 || more && !end {
			if end {
				return nil
			}
			continue
		}
		if err := b.line(words); err != nil || end {
			return err
		}
		words = nil
	}
	if len(words) > 0 {
		return b.line(words)
	}
	return lines.Err()
}

// split cuts a line into arguments: at blanks, but for what quotes and backslashes protect. With -I a line is one. end
// says that the argument that ends the input was met.
func (b *batcher) split(line []byte) (words []string, end bool, err error) {
	if b.replace != "" {
		line = bytes.TrimLeft(line, " \t")
	}
	var word []byte
	in, quote := false, byte(0)
	flush := func() {
		if in && !end {
			if end = b.hasEOF && string(word) == b.eof; !end {
				words = append(words, string(word))
			}
		}
		word, in = nil, false
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			} else {
				word = append(word, c)
			}
		case c == '\'' || c == '"':
			quote, in = c, true
		case c == '\\' && i+1 < len(line):
			i++
			word, in = append(word, line[i]), true
		case (c == ' ' || c == '\t') && b.replace == "":
			flush()
		default:
			word, in = append(word, c), true
		}
	}
	if quote != 0 {
		kind := map[byte]string{'\'': "single", '"': "double"}[quote]
		return words, false, b.Die(1, "unmatched %s quote; by default quotes are special to xargs unless you use the -0 option", kind)
	}
	flush()
	return words, end, nil
}

// line adds the arguments of one line, running the command when there are enough.
func (b *batcher) line(words []string) error {
	if b.replace != "" {
		return b.substitute(words[0])
	}
	for _, word := range words {
		full := b.perArgs > 0 && len(b.args) >= b.perArgs || b.size+len(word)+1+b.base() > b.chars && len(b.args) > 0
		if full {
			if err := b.run(); err != nil {
				return err
			}
		}
		if b.base() > b.chars {
			return b.Die(1, "cannot fit single argument within argument list size limit")
		}
		if len(word)+1+b.base() > b.chars {
			return b.Die(1, "argument line too long")
		}
		b.args, b.size = append(b.args, word), b.size+len(word)+1
	}
	if b.lines++; b.perLine > 0 && b.lines >= b.perLine {
		return b.run()
	}
	return nil
}

func (b *batcher) base() int {
	n := 0
	for _, word := range b.command {
		n += len(word) + 1
	}
	return n
}

func (b *batcher) substitute(text string) error {
	args := make([]string, len(b.command))
	for i, word := range b.command {
		args[i] = strings.ReplaceAll(word, b.replace, text)
	}
	args[0] = b.command[0]
	return b.start(args)
}

func (b *batcher) run() error {
	args := append(append([]string(nil), b.command...), b.args...)
	b.args, b.size, b.lines = nil, 0, 0
	return b.start(args)
}

// start runs one command.
func (b *batcher) start(args []string) error {
	b.ran = true
	if err := b.Step(b.ctx, 10); err != nil {
		return err
	}
	if b.trace {
		fmt.Fprintln(b.Stderr, strings.Join(args, " "))
	}
	if err := b.Out.Flush(); err != nil {
		return err
	}
	p := *b.Process
	p.Args, p.Stdin, p.Refused = args, strings.NewReader(""), "xargs: %s: %s"
	status := b.Run(b.ctx, &p)
	switch {
	case b.ctx.Err() != nil:
		return b.ctx.Err()
	case status == command.StatusNotFound, status == command.StatusNotExecutable:
		return tool.Exit(status)
	case status == 255:
		return b.Die(124, "%s: exited with status 255; aborting", args[0])
	case status > 128:
		return b.Die(125, "%s: terminated by signal %d", args[0], status-128)
	case status != 0:
		b.Status = 123
	}
	return nil
}
