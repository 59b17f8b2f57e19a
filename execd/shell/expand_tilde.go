package shell

import "strings"

// tilde expands a tilde at the start of literal text, and in assignments those behind colons. more says that other
// parts of the word follow, so that a tilde's name may go on in them.
func (sh *shell) tilde(out []piece, text string, m mode, more bool) ([]piece, string) {
	if strings.IndexByte(text, '~') < 0 {
		return out, text
	}
	if !m.noTilde {
		if m.argument {
			if i := strings.IndexByte(text, '='); i > 0 && isName(strings.TrimSuffix(text[:i], "+")) {
				out = append(out, piece{text[:i+1], literal})
				text, m.assign = text[i+1:], true
			}
		}
		out, text = sh.tildeAt(out, text, m.assign, more)
	}
	if !m.assign {
		return out, text
	}
	for {
		i := strings.Index(text, ":~")
		if i < 0 || strings.HasSuffix(text[:i], "\\") {
			return out, text
		}
		k := literal
		if m.split {
			k = expanded
		}
		out = backslashes(out, text[:i+1], k)
		rest := text[i+1:]
		out, text = sh.tildeAt(out, rest, true, more)
		if text == rest {
			out = append(out, piece{"~", literal})
			text = rest[1:]
		}
	}
}

func (sh *shell) tildeAt(out []piece, text string, colons, more bool) ([]piece, string) {
	if !strings.HasPrefix(text, "~") {
		return out, text
	}
	stops := "/"
	if colons {
		stops = "/:"
	}
	end := strings.IndexAny(text, stops)
	if end < 0 {
		if more {
			return out, text
		}
		end = len(text)
	}
	home, ok := sh.home(text[1:end])
	if !ok {
		return out, text
	}
	if end < len(text) && text[end] == '/' && strings.HasSuffix(home, "/") {
		home = strings.TrimSuffix(home, "/")
	}
	return append(out, piece{home, quoted}), text[end:]
}

// home is what ~name stands for.
func (sh *shell) home(name string) (string, bool) {
	switch name {
	case "":
		if h, ok := sh.get("HOME"); ok {
			return h, true
		}
		return sh.homeOf(sh.cfg.User), true
	case "+":
		return sh.get("PWD")
	case "-":
		return sh.get("OLDPWD")
	case "root", sh.cfg.User:
		return sh.homeOf(name), true
	}
	if n, ok := stackNumber(name); ok {
		stack := sh.directoryStack()
		if n < 0 {
			n += len(stack)
		}
		if n >= 0 && n < len(stack) {
			return stack[n], true
		}
	}
	return "", false
}

func (sh *shell) homeOf(user string) string {
	if user == "root" {
		return "/root"
	}
	return "/home/" + user
}
