package git

import (
	"regexp"
	"slices"
	"strings"
)

// configHeader begins a section of a configuration: [section], [section "sub"] or, of old, [section.sub].
var configHeader = regexp.MustCompile(`^[ \t]*\[\s*([-.A-Za-z0-9]+)\s*(?:"((?:[^"\\]|\\.)*)"\s*)?\]`)

// configText is a file of the configuration as lines, so that what is not changed stays as somebody wrote it, with
// comments and all.
type configText struct {
	items []configItem
}

// configItem is a section's head, a variable with all its lines, or what is neither.
type configItem struct {
	text    string // with its newlines
	header  bool
	section string // which it is in, or begins; in small letters
	sub     string
	key     string // "" for none; in small letters
}

// parseConfigText takes a file apart.
func parseConfigText(text string) *configText {
	c := &configText{}
	section, sub := "", ""
	for text != "" {
		if m := configHeader.FindStringSubmatch(text); m != nil {
			section, sub = strings.ToLower(m[1]), unescapeConfig.ReplaceAllString(m[2], "$1")
			if before, after, ok := strings.Cut(m[1], "."); ok {
				section, sub = strings.ToLower(before), strings.ToLower(after)
			}
			head, rest := m[0], text[len(m[0]):]
			line, _, _ := strings.Cut(rest, "\n")
			if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';' {
				head, rest = head+line, rest[len(line):]
				if strings.HasPrefix(rest, "\n") {
					head, rest = head+"\n", rest[1:]
				}
			}
			if !strings.HasSuffix(head, "\n") {
				head += "\n" // a variable follows on the line, or it is the last one
			}
			c.items = append(c.items, configItem{text: head, header: true, section: section, sub: sub})
			text = rest
			continue
		}
		n := configLine(text)
		item := configItem{text: text[:n], section: section, sub: sub}
		if key := strings.TrimSpace(item.text); key != "" && key[0] != '#' && key[0] != ';' {
			if i := strings.IndexAny(key, "= \t\n"); i >= 0 {
				key = key[:i]
			}
			item.key = strings.ToLower(key)
		}
		if !strings.HasSuffix(item.text, "\n") {
			item.text += "\n"
		}
		c.items = append(c.items, item)
		text = text[n:]
	}
	return c
}

var unescapeConfig = regexp.MustCompile(`\\(.)`)

// configLine is how long a line is, with those that a backslash at its end adds.
func configLine(text string) int {
	comment := strings.HasPrefix(strings.TrimLeft(text, " \t"), "#") || strings.HasPrefix(strings.TrimLeft(text, " \t"), ";")
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && !comment:
			if strings.HasPrefix(text[i+1:], "\r\n") {
				i++
			}
			i++
		case text[i] == '\n':
			return i + 1
		}
	}
	return len(text)
}

func (c *configText) String() string {
	var b strings.Builder
	for _, it := range c.items {
		b.WriteString(it.text)
	}
	return b.String()
}

// find returns where the variables of a name are.
func (c *configText) find(section, sub, key string) (at []int) {
	for i, it := range c.items {
		if it.section == section && it.sub == sub && it.key == key && key != "" && !it.header {
			at = append(at, i)
		}
	}
	return at
}

// set gives a variable, by its whole name as key, a value, in the place of the last one that it has, or of one more.
func (c *configText) set(section, sub, key, value string, more bool) {
	spelled := key[strings.LastIndexByte(key, '.')+1:]
	item := configItem{text: "\t" + spelled + " = " + quoteConfig(value) + "\n", section: section, sub: sub, key: strings.ToLower(spelled)}
	if at := c.find(section, sub, item.key); len(at) > 0 && !more {
		c.items[at[len(at)-1]] = item
		return
	}
	last := -1
	for i, it := range c.items {
		if it.section == section && it.sub == sub && (it.header || it.key != "") {
			last = i
		}
	}
	if last < 0 {
		head := "[" + section + "]\n"
		if sub != "" {
			head = "[" + section + ` "` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(sub) + "\"]\n"
		}
		c.items = append(c.items, configItem{text: head, header: true, section: section, sub: sub}, item)
		return
	}
	c.items = slices.Insert(c.items, last+1, item)
}

// unset takes variables out, and the head of their section when that has nothing then.
func (c *configText) unset(at []int) {
	if len(at) == 0 {
		return
	}
	of := c.items[at[0]]
	for _, i := range slices.Backward(at) {
		c.items = slices.Delete(c.items, i, i+1)
	}
	for i := len(c.items) - 1; i >= 0; i-- {
		it := c.items[i]
		if it.header && it.section == of.section && it.sub == of.sub && (i+1 == len(c.items) || c.items[i+1].header) {
			c.items = slices.Delete(c.items, i, i+1)
		}
	}
}

// removeSection takes out a section, and says whether there was one.
func (c *configText) removeSection(section, sub string) bool {
	before := len(c.items)
	c.items = slices.DeleteFunc(c.items, func(it configItem) bool { return it.section == section && it.sub == sub })
	return len(c.items) < before
}

// renameSection gives a subsection another name.
func (c *configText) renameSection(section, from, to string) {
	for i, it := range c.items {
		if it.section != section || it.sub != from {
			continue
		}
		c.items[i].sub = to
		if it.header {
			c.items[i].text = "[" + section + ` "` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(to) + "\"]\n"
		}
	}
}

// quoteConfig writes a value so that it is read as it is.
func quoteConfig(value string) string {
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(value)
	if strings.ContainsAny(value, "#;") || value != strings.TrimSpace(value) {
		return `"` + quoted + `"`
	}
	return quoted
}
