package shell

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/carrelfs/carrel/execd/shell/command/datetime"
)

// prompt expands a prompt string, as $PS1 and $PS4 are and ${name@P}: backslash sequences first, then expansions.
func (sh *shell) prompt(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if s[i] >= '0' && s[i] <= '7' {
			n, text := octalPrompt(s[i:])
			b.WriteString(text)
			i += n - 1
			continue
		}
		if s[i] == 'D' && i+1 < len(s) && s[i+1] == '{' {
			if end := strings.IndexByte(s[i:], '}'); end > 0 {
				format := s[i+2 : i+end]
				if format == "" {
					format = "%X"
				}
				b.WriteString(datetime.Format(sh.inZone(sh.cfg.Now()), format))
				i += end
				continue
			}
		}
		b.WriteString(sh.promptOne(s[i]))
	}
	text := b.String()
	if !strings.ContainsAny(text, "$`\\") {
		return text
	}
	w, err := parseDocument(text)
	if err != nil {
		return text
	}
	status, subst := sh.status, sh.substDone
	defer func() { sh.status, sh.substDone = status, subst }()
	return sh.join(sh.pieces(nil, w.Parts, mode{quotes: true, noSplit: true, noTilde: true}))
}

// zone is that of $TZ, whose data is looked for in the tree.
func (sh *shell) zone() *time.Location {
	return datetime.Zone(sh.getOr("TZ", ""), func(path string) ([]byte, error) {
		return sh.fs().ReadFile(sh.ctx, path, 1<<20)
	})
}

func (sh *shell) inZone(t time.Time) time.Time { return t.In(sh.zone()) }

func octalPrompt(s string) (int, string) {
	n, v := 0, 0
	for n < len(s) && n < 3 && s[n] >= '0' && s[n] <= '7' {
		v = v*8 + int(s[n]-'0')
		n++
	}
	return n, string([]byte{byte(v)})
}

func (sh *shell) promptOne(c byte) string {
	now := sh.inZone(sh.cfg.Now())
	v := bashVersion
	switch c {
	case 'a':
		return "\a"
	case 'e':
		return "\x1b"
	case 'n':
		return "\n"
	case 'r':
		return "\r"
	case '\\':
		return "\\\\"
	case '[', ']':
		return ""
	case '$':
		if sh.cfg.Cred.UID == 0 {
			return "#"
		}
		return "\\$"
	case 'd':
		return now.Format("Mon Jan 02")
	case 't':
		return now.Format("15:04:05")
	case 'T':
		return now.Format("03:04:05")
	case '@':
		return now.Format("03:04 PM")
	case 'A':
		return now.Format("15:04")
	case 'h':
		host, _, _ := strings.Cut(sh.cfg.Host, ".")
		return host
	case 'H':
		return sh.cfg.Host
	case 'j':
		return fmt.Sprint(len(sh.jobs.visible()))
	case 'l':
		return "tty"
	case 's':
		return path.Base(sh.name)
	case 'u':
		return sh.cfg.User
	case 'v':
		return v[0] + "." + v[1]
	case 'V':
		return v[0] + "." + v[1] + "." + v[2]
	case 'w':
		return sh.shortDir(sh.dir)
	case 'W':
		if d := sh.shortDir(sh.dir); d == "~" {
			return d
		}
		return path.Base(sh.dir)
	case '!', '#':
		return "1"
	}
	return "\\" + string(c)
}
