package awk

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/carrelfs/carrel/execd/shell/command/printf"
)

func sprintf(in *interp, args []expr) (value, error) {
	s, err := in.sprintf(args)
	return str(s), err
}

func (in *interp) sprintf(args []expr) (string, error) {
	if len(args) == 0 {
		return "", fatal("printf: no format")
	}
	values := make([]value, len(args))
	for i, arg := range args {
		v, err := in.eval(arg)
		if err != nil {
			return "", err
		}
		values[i] = v
	}
	format := in.text(values[0])
	values = values[1:]
	next := func() value {
		if len(values) == 0 {
			return value{}
		}
		v := values[0]
		values = values[1:]
		return v
	}
	var b strings.Builder
	for format != "" {
		i := strings.IndexByte(format, '%')
		if i < 0 || i == len(format)-1 {
			b.WriteString(format)
			break
		}
		b.WriteString(format[:i])
		format = format[i+1:]
		if format[0] == '%' {
			b.WriteByte('%')
			format = format[1:]
			continue
		}
		spec, rest, ok := printf.ParseSpec(format, func() int64 { return int64(next().num()) })
		if !ok {
			b.WriteByte('%')
			continue
		}
		b.WriteString(in.convert(spec, next()))
		format = rest
	}
	return b.String(), nil
}

func (in *interp) convert(s printf.Spec, v value) string {
	switch s.Verb {
	case 'd', 'i':
		n := math.Trunc(v.num())
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return s.Text(spell(n, "%.6g"))
		}
		return s.Number(strconv.FormatFloat(n, 'f', 0, 64))
	case 'o', 'x', 'X', 'u':
		n := v.num()
		if n < 0 {
			return s.Number(strconv.FormatFloat(math.Trunc(n), 'f', 0, 64))
		}
		return s.Unsigned(uint64(n))
	case 'c':
		if v = v.settle(); v.kind == number || v.kind == numeric {
			return s.Text(string(utf8.AppendRune(nil, rune(v.n))))
		}
		r, size := utf8.DecodeRuneInString(v.s)
		if r == utf8.RuneError && size == 1 {
			return s.Text(v.s[:1])
		}
		return s.Text(v.s[:size])
	case 's':
		return s.Text(in.text(v))
	case 'b', 'q', 'Q', 'T':
		return s.Text(in.text(v))
	}
	return s.Number(printf.Float(v.num(), s.Verb, s.Precision, s.Alternate))
}
