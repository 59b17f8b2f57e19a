package sqlite

import "strings"

// complete says whether text ends at the end of a statement, but for white space and comments, as sqlite3_complete(3) does.
func complete(text string) bool {
	for {
		n, ok := cut(text)
		if !ok {
			return false
		}
		if text = text[n:]; blank(text) {
			return true
		}
	}
}

// cut returns how long the first statement is, its semicolon included. In the middle of a trigger only the one after END
// counts. False when there is no end.
func cut(text string) (n int, ok bool) {
	const (
		start   = iota // of a statement, EXPLAIN perhaps
		create         // CREATE, TEMP perhaps
		plain          // any other statement
		trigger        // the body of a trigger
		after          // a semicolon in it
		end            // END after that
	)
	state := start
	for n < len(text) {
		size, word := token(text[n:])
		at := text[n]
		n += size
		switch {
		case word == "" && (size > 1 && (at == '-' || at == '/') || isSpace(at)): // a comment or space
		case at == ';':
			switch state {
			case trigger, after:
				state = after
			default:
				return n, true
			}
		case state == start && word == "EXPLAIN", state == create && (word == "TEMP" || word == "TEMPORARY"):
		case state == start && word == "CREATE":
			state = create
		case state == create && word == "TRIGGER":
			state = trigger
		case state == after && word == "END":
			state = end
		case state == after || state == end:
			state = trigger
		case state == start || state == create:
			state = plain
		}
	}
	return n, false
}

// blank says whether text is white space and comments.
func blank(text string) bool {
	for text != "" {
		size, word := token(text)
		if word != "" || !isSpace(text[0]) && (size == 1 || text[0] != '-' && text[0] != '/') {
			return false
		}
		text = text[size:]
	}
	return true
}

// words returns the first words of a statement in capitals, at most n.
func words(text string, n int) []string {
	var found []string
	for text != "" && len(found) < n {
		size, word := token(text)
		if word != "" {
			found = append(found, word)
		} else if !isSpace(text[0]) && (size == 1 || text[0] != '-' && text[0] != '/') {
			break
		}
		text = text[size:]
	}
	return found
}

// token returns the length of what text begins with, and the word in capitals if it is one: a comment, a quoted name or
// string, white space, a word, or one character.
func token(text string) (size int, word string) {
	switch c := text[0]; {
	case strings.HasPrefix(text, "--"):
		if i := strings.IndexByte(text, '\n'); i >= 0 {
			return i + 1, ""
		}
		return len(text), ""
	case strings.HasPrefix(text, "/*"):
		if i := strings.Index(text[2:], "*/"); i >= 0 {
			return i + 4, ""
		}
		return len(text), ""
	case c == '\'' || c == '"' || c == '`':
		return closing(text, c), ""
	case c == '[':
		return closing(text, ']'), ""
	case isSpace(c):
		return len(text) - len(strings.TrimLeft(text, " \t\r\n\f")), ""
	case isWord(c):
		for size < len(text) && isWord(text[size]) {
			size++
		}
		return size, strings.ToUpper(text[:size])
	}
	return 1, ""
}

func closing(text string, quote byte) int {
	if i := strings.IndexByte(text[1:], quote); i >= 0 {
		return i + 2
	}
	return len(text)
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' && c != '\v' }

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}
