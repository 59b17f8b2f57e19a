package worker

import (
	"encoding/base64"
	"strings"
)

// Bytes cross between Go and the module as strings with one character, of 0 to 255, for each byte: the engine's API has no
// other way.

func latin1(s string) []byte {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		b = append(b, byte(r))
	}
	return b
}

func toLatin1(b []byte) string {
	var s strings.Builder
	s.Grow(len(b) + len(b)/2)
	for _, c := range b {
		s.WriteRune(rune(c))
	}
	return s.String()
}

// bytesOf encodes text.
func bytesOf(args []any) (any, error) { return toLatin1([]byte(str(args, 0))), nil }

// base64Of encodes bytes, or with a second argument decodes them: it gives nothing for what is not base64, padded or not.
func base64Of(args []any) (any, error) {
	if num(args, 1) == 0 {
		return base64.StdEncoding.EncodeToString(latin1(str(args, 0))), nil
	}
	s := str(args, 0)
	if len(s)%4 == 0 {
		s = strings.TrimSuffix(strings.TrimSuffix(s, "="), "=")
	}
	b, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil {
		return nil, nil
	}
	return toLatin1(b), nil
}

func str(args []any, i int) string {
	if i >= len(args) {
		return ""
	}
	s, _ := args[i].(string)
	return s
}

func num(args []any, i int) float64 {
	if i >= len(args) {
		return 0
	}
	switch n := args[i].(type) {
	case int:
		return float64(n)
	case float64:
		return n
	case bool:
		if n {
			return 1
		}
	}
	return 0
}

// call is a call to the daemon about files: op, path, second path, data (with encoding 1 as bytes), number, flag, whether
// the answer is bytes, an offset and a size. It gives [code, text].
func (r *run) call(args []any) (any, error) {
	c := Call{
		Op: str(args, 0), Path: str(args, 1), Path2: str(args, 2), Number: int64(num(args, 5)), Offset: int64(num(args, 8)),
		Size: int64(num(args, 9)), Flag: num(args, 6) == 1,
	}
	if c.Data = []byte(str(args, 3)); num(args, 4) == 1 {
		c.Data = latin1(str(args, 3))
	}
	if len(c.Data) > MaxFile {
		return []any{"EFBIG", "file too large"}, nil
	}
	switch c.Op {
	case OpBegun, OpEnd, OpWrite, OpModule, OpStdin:
		return []any{"EINVAL", "invalid argument"}, nil
	}
	reply := r.link.do(c)
	if reply.Code != "" {
		return []any{reply.Code, reply.Message}, nil
	}
	if num(args, 7) == 1 {
		return []any{"", toLatin1(reply.Data)}, nil
	}
	text, _, _ := decodeUTF8(reply.Data, false)
	return []any{"", text}, nil
}
