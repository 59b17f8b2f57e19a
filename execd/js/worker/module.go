package worker

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// modules finds what modules import.
type modules struct {
	job      *Job
	read     func(path string) Reply // of the workspace
	builtins map[string][]string     // what each exports beside its default
	places   map[string]string       // of each module by its name, when that is not its place
	loaded   int
}

// moduleError says why there is no such module, with the code that node has for it.
type moduleError struct{ code, message string }

func (e *moduleError) Error() string { return e.message }

func noModule(code, format string, args ...any) error {
	return &moduleError{code, fmt.Sprintf(format, args...)}
}

const (
	codeNotFound    = "ERR_MODULE_NOT_FOUND"
	codeNoBuiltin   = "ERR_UNKNOWN_BUILTIN_MODULE"
	codeScheme      = "ERR_UNSUPPORTED_ESM_URL_SCHEME"
	codeSpecifier   = "ERR_INVALID_MODULE_SPECIFIER"
	codeAttribute   = "ERR_IMPORT_ATTRIBUTE_UNSUPPORTED"
	codeUnsupported = "ERR_FEATURE_UNAVAILABLE_ON_PLATFORM"
)

var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// resolve gives what base imports as specifier its name: node:NAME, or an absolute path in the workspace. What comes after a
// question mark makes it another module of the same file, as everywhere.
func (m *modules) resolve(base, specifier string) (string, error) {
	if strings.IndexByte(specifier, 0) >= 0 {
		return "", noNUL(specifier)
	}
	name := strings.TrimPrefix(specifier, "node:")
	if _, ok := m.builtins[name]; ok {
		return "node:" + name, nil
	}
	local, isFile := strings.CutPrefix(specifier, "file://")
	switch {
	case strings.HasPrefix(specifier, "node:"):
		return "", noModule(codeNoBuiltin, "No such built-in module: %s", specifier)
	case !isFile && scheme.MatchString(specifier):
		return "", noModule(codeScheme, "Only file: and node: URLs can be imported, not %q", specifier)
	case !strings.HasPrefix(local, "/") && !isRelative(local):
		return "", noModule(codeNotFound, "Cannot find package '%s' imported from %s: there are paths and, of node, %s",
			specifier, base, strings.Join(m.builtinNames(), ", "))
	}
	return m.place(base, local)
}

func noNUL(name string) error {
	return noModule(codeSpecifier, "Invalid module %q: a name has no NUL in it", name)
}

func isRelative(s string) bool {
	return s == "." || s == ".." || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../")
}

func (m *modules) builtinNames() (names []string) {
	for name := range m.builtins {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// place resolves a path, in which a URL may have escapes.
func (m *modules) place(base, local string) (string, error) {
	local, query := cutURL(local)
	if strings.Contains(strings.ToLower(local), "%2f") {
		return "", noModule(codeSpecifier, "Invalid module %q: a name has no slash in it", local)
	}
	if plain, err := url.PathUnescape(local); err == nil {
		local = plain
	}
	if strings.IndexByte(local, 0) >= 0 {
		return "", noNUL(local)
	}
	if !strings.HasPrefix(local, "/") {
		local = path.Join("/", path.Dir(m.file(base)), local) // ".." at the root stays there
	}
	local = path.Clean(local)
	if query == "" {
		return local, nil
	}
	m.places[local+query] = local
	return local + query, nil
}

// cutURL parts a path from a query and a fragment.
func cutURL(s string) (local, rest string) {
	if i := strings.IndexAny(s, "?#"); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// file is where the module of a name is.
func (m *modules) file(name string) string {
	if place := m.places[name]; place != "" {
		return place
	}
	return name
}

// load gives the text of a module.
func (m *modules) load(name, kind string) (string, error) {
	if b, ok := strings.CutPrefix(name, "node:"); ok {
		return m.builtin(b), nil
	}
	if m.loaded++; m.loaded > maxModules {
		return "", noModule(codeUnsupported, "more than %d modules", maxModules)
	}
	file := m.file(name)
	switch {
	case kind != "" && kind != "json":
		return "", noModule(codeAttribute, "Import attribute \"type\" with value %q is not supported", kind)
	case strings.HasSuffix(file, ".cjs"):
		return "", noModule(codeUnsupported, "%s is a CommonJS module: only ES modules are run", file)
	case strings.HasSuffix(file, ".node"), strings.HasSuffix(file, ".wasm"):
		return "", noModule(codeUnsupported, "%s is no module of JavaScript", file)
	}
	text := m.job.Source
	if file != m.job.Main || text == "" {
		reply := m.read(file)
		switch reply.Code {
		case "":
		case "ENOENT", "ENOTDIR":
			return "", noModule(codeNotFound, "Cannot find module '%s': %s: %s", file, reply.Code, reply.Message)
		default:
			return "", noModule(reply.Code, "Cannot read module '%s': %s: %s", file, reply.Code, reply.Message)
		}
		text = string(reply.Data)
	}
	if kind == "json" || strings.HasSuffix(file, ".json") {
		return jsonModule(file, text)
	}
	if strings.HasPrefix(text, "#!") {
		text = "//" + text // so that the numbers of lines stay
	}
	return text, nil
}

// jsonModule has JSON parsed as such: as an expression some of it means something else.
func jsonModule(file, text string) (string, error) {
	text = strings.TrimPrefix(text, "\uFEFF")
	if !json.Valid([]byte(text)) {
		return "", noModule("ERR_INVALID_JSON", "%s is not JSON", file)
	}
	literal, err := json.Marshal(text)
	if err != nil {
		return "", err
	}
	return "export default globalThis.__node.json(" + string(literal) + ")", nil
}

var identifier = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

// builtin exports what the prelude has made.
func (m *modules) builtin(name string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "const m = globalThis.__node[%q]; export default m;\n", name)
	for _, export := range m.builtins[name] {
		if identifier.MatchString(export) && export != "default" {
			fmt.Fprintf(&text, "const $%s = m.%s; export { $%s as %s };\n", export, export, export, export)
		}
	}
	return text.String()
}
