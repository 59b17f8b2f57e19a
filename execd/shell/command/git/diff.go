package git

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/carrelfs/carrel/execd/shell/command/compare"
)

// shape is in which forms changes are printed: names of shapes, in their order.
type shape struct {
	kinds   []string
	context int
}

// shapes are the options that choose a form, in the order in which they are printed.
var shapes = []string{"name-only", "name-status", "numstat", "stat", "shortstat", "summary", "p=patch=u", "s=no-patch"}

func (g *call) shapeOf(f *flags, usual ...string) (shape, error) {
	s := shape{nil, 3}
	for _, o := range shapes {
		name, _, _ := strings.Cut(o, "=")
		if f.has(name) {
			s.kinds = append(s.kinds, name)
		}
	}
	if f.has("s") {
		s.kinds = nil
	} else if len(s.kinds) == 0 {
		s.kinds = usual
	}
	if text := f.value("U"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return s, g.fatal("-U expects a number")
		}
		s.context = n
		if len(s.kinds) == 0 {
			s.kinds = []string{"p"}
		}
	}
	return s, nil
}

var diffOptions = append([]string{"cached=staged", "U:=unified", "exit-code", "quiet", "no-color", "no-renames", "no-ext-diff"}, shapes...)

// diff is git diff.
func (g *call) diff(args []string) error {
	f, err := g.flags(args)
	if err != nil {
		return err
	}
	s, err := g.shapeOf(f, "p")
	if err != nil {
		return err
	}
	revs, within, err := g.revisionsAndPaths(f)
	if err != nil {
		return err
	}
	from, to, err := g.diffSides(revs, f.has("cached"))
	if err != nil {
		return err
	}
	list := changes(from, to, within, false)
	if !f.has("no-renames") {
		if list, err = g.diffed(from, to, within); err != nil {
			return err
		}
	}
	clashes, list, err := g.splitUnmerged(list, len(revs), within)
	if err != nil {
		return err
	}
	if len(list)+len(clashes) > 0 && (f.has("exit-code") || f.has("quiet")) {
		g.Status = 1
	}
	if f.has("quiet") {
		return nil
	}
	if slices.Contains(s.kinds, "p") && !f.has("cached") {
		if err := g.printUnmerged(clashes, s.context); err != nil {
			return err
		}
		clashes = nil
	}
	for _, name := range clashes {
		switch {
		case slices.Contains(s.kinds, "name-only"):
			_ = g.print("%s\n%[1]s\n", quotePath(name)) // as what is not merged, and as what was changed
		case slices.Contains(s.kinds, "name-status"):
			_ = g.print("U\t%s\n", quotePath(name))
		default:
			_ = g.print("* Unmerged path %s\n", quotePath(name))
		}
	}
	return g.printChanges(list, s)
}

// splitUnmerged takes files that are not merged out of a comparison with the index, which has none of them.
func (g *call) splitUnmerged(list []change, revs int, within []scope) (names []string, rest []change, err error) {
	if revs > 0 {
		return nil, list, nil
	}
	x, err := g.readIndex()
	if err != nil {
		return nil, nil, err
	}
	all := unmerged(x)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if inScopes(within, name) {
			names = append(names, name)
		}
	}
	return names, slices.DeleteFunc(list, func(c change) bool { return slices.Contains(names, c.path) }), nil
}

// revisionsAndPaths tells the operands apart that come before --: revisions, and from the first that is none, paths.
func (g *call) revisionsAndPaths(f *flags) (revs []string, within []scope, err error) {
	names := f.paths
	for i, a := range f.args {
		if g.isRevision(a) {
			revs = append(revs, a)
			continue
		}
		if f.dashed {
			return nil, nil, g.fatal("bad revision '%s'", a)
		}
		for _, name := range f.args[i:] {
			magic, rest, err := pathMagic(name)
			if err == nil && (magic.exclude || magic.top) {
				if strings.HasPrefix(name, ":(") || rest == "" {
					continue
				}
				name = rest
			}
			if p, err := g.path(name); err != nil {
				return nil, nil, err
			} else if _, err := g.FS.Lstat(g.ctx, slash(g.root, p)); err != nil && !strings.ContainsAny(name, "*?[") {
				return nil, nil, g.badRevision(name)
			}
		}
		names = append(names, f.args[i:]...)
		break
	}
	within, err = g.scopes(names)
	return revs, within, err
}

func (g *call) isRevision(text string) bool {
	for _, part := range rangeParts(text) {
		if _, ok := g.resolve(strings.TrimPrefix(part, "^")); !ok {
			return false
		}
	}
	return true
}

// rangeParts are the revisions that a word names: one, or the two of a..b or a...b.
func rangeParts(text string) []string {
	for _, dots := range []string{"...", ".."} {
		if a, b, ok := strings.Cut(text, dots); ok {
			return []string{a, b}
		}
	}
	return []string{text}
}

// diffSides returns what is to be compared.
func (g *call) diffSides(revs []string, cached bool) (from, to snapshot, err error) {
	var names []string
	for _, r := range revs {
		parts := rangeParts(r)
		if len(parts) == 2 && strings.Contains(r, "...") {
			if parts[0], err = g.forkPoint(parts); err != nil {
				return nil, nil, err
			}
		}
		names = append(names, parts...)
	}
	x, err := g.readIndex()
	if err != nil {
		return nil, nil, err
	}
	if len(names) == 0 && cached {
		if _, commit, err := g.head(); err != nil || commit.IsZero() {
			return snapshot{}, indexSnapshot(x), err
		}
		names = []string{"HEAD"}
	}
	var sides []snapshot
	for _, name := range names {
		h, _ := g.resolve(name)
		s, err := g.commitSnapshot(h)
		if err != nil {
			return nil, nil, g.fatal("%s is not a tree", name)
		}
		sides = append(sides, s)
	}
	switch {
	case len(sides) > 2:
		return nil, nil, g.fatal("more than two revisions to compare")
	case len(sides) == 2:
		return sides[0], sides[1], nil
	case cached:
		return sides[0], indexSnapshot(x), nil
	}
	to, err = g.workSnapshot(x)
	if len(sides) == 1 {
		return sides[0], to, err
	}
	return indexSnapshot(x), to, err
}

// forkPoint is the commit that the sides of a...b have in common, which git compares b with.
func (g *call) forkPoint(parts []string) (string, error) {
	a, err := g.commitOf(parts[0])
	if err != nil {
		return "", err
	}
	b, err := g.commitOf(parts[1])
	if err != nil {
		return "", err
	}
	p, err := g.paint(a.Hash, b.Hash)
	if err != nil {
		return "", err
	}
	if len(p.bases) == 0 {
		return "", g.fatal("%s...%s: no merge base", parts[0], parts[1])
	}
	return p.bases[0].Hash.String(), nil
}

// printChanges prints changes in the forms of a shape.
func (g *call) printChanges(list []change, s shape) error {
	forms := map[string]func([]change) error{
		"name-only":   func(list []change) error { return g.names(list, false) },
		"name-status": func(list []change) error { return g.names(list, true) },
		"numstat":     g.numStat, "stat": g.stat, "shortstat": g.shortStat, "summary": g.summary,
		"p": func(list []change) error { return g.patches(list, s) },
	}
	for _, kind := range s.kinds {
		if err := forms[kind](list); err != nil {
			return err
		}
	}
	return nil
}

func (g *call) patches(list []change, s shape) error {
	if len(s.kinds) > 1 && len(list) > 0 {
		_ = g.print("\n")
	}
	for _, c := range list {
		if err := g.Aside(func() error { return g.patch(c, s.context) }); err != nil {
			return err
		}
	}
	return nil
}

func (g *call) names(list []change, status bool) error {
	for _, c := range list {
		switch {
		case !status:
			_ = g.print("%s\n", quotePath(c.path))
		case c.old != "":
			_ = g.print("R%03d\t%s\t%s\n", c.score, quotePath(c.old), quotePath(c.path))
		default:
			_ = g.print("%c\t%s\n", c.letter(), quotePath(c.path))
		}
	}
	return nil
}

// texts are the bytes of both sides of a change.
func (g *call) texts(c change) (a, b []byte, err error) {
	if c.from.mode != 0 {
		old := c.path
		if c.old != "" {
			old = c.old
		}
		if a, err = g.data(old, c.from); err != nil {
			return nil, nil, err
		}
	}
	if c.to.mode != 0 {
		b, err = g.data(c.path, c.to)
	}
	return a, b, err
}

// patch prints one change as a patch.
func (g *call) patch(c change, context int) error {
	if c.letter() == 'T' { // another kind of file: one goes, one comes
		if err := g.patch(change{path: c.path, from: c.from}, context); err != nil {
			return err
		}
		return g.patch(change{path: c.path, to: c.to}, context)
	}
	old := c.path
	if c.old != "" {
		old = c.old
	}
	from, to := quotePath("a/"+old), quotePath("b/"+c.path)
	_ = g.print("diff --git %s %s\n", from, to)
	mode := ""
	switch {
	case c.from.mode == 0:
		_ = g.print("new file mode %06o\n", uint32(c.to.mode))
		from = "/dev/null"
	case c.to.mode == 0:
		_ = g.print("deleted file mode %06o\n", uint32(c.from.mode))
		to = "/dev/null"
	case c.from.mode != c.to.mode:
		_ = g.print("old mode %06o\nnew mode %06o\n", uint32(c.from.mode), uint32(c.to.mode))
	default:
		mode = fmt.Sprintf(" %06o", uint32(c.from.mode))
	}
	if c.old != "" {
		_ = g.print("similarity index %d%%\nrename from %s\nrename to %s\n", c.score, quotePath(c.old), quotePath(c.path))
	}
	if c.from.hash == c.to.hash {
		return nil
	}
	_ = g.print("index %s..%s%s\n", g.abbreviate(c.from), g.abbreviate(c.to), mode)
	a, b, err := g.texts(c)
	if err != nil {
		return err
	}
	if isBinary(a) || isBinary(b) {
		return g.print("Binary files %s and %s differ\n", from, to)
	}
	t, err := compare.NewTexts(g.ctx, g.Call, a, b)
	if err != nil || t.Inserted+t.Deleted == 0 {
		return err
	}
	_ = g.print("--- %s\n+++ %s\n", tabbed(from), tabbed(to))
	return t.Hunks(context, section)
}

// tabbed ends a name with spaces by a tab, so that patch(1) sees where it ends.
func tabbed(name string) string {
	if strings.Contains(name, " ") {
		return name + "\t"
	}
	return name
}

func (g *call) abbreviate(e entry) string {
	if e.mode == 0 {
		return plumbing.ZeroHash.String()[:7]
	}
	return g.short(e.hash)
}

// maxSection is how much of a line says what a hunk is in.
const maxSection = 80

// section finds the last line before a hunk that begins like that of a function.
func section(before [][]byte) string {
	for i := len(before) - 1; i >= 0; i-- {
		line := before[i]
		if len(line) == 0 {
			continue
		}
		if c := line[0]; c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$' {
			return " " + string(bytes.TrimRight(line[:min(len(line), maxSection)], " \t\r"))
		}
	}
	return ""
}

// stats are the sizes of changes.
type stats struct {
	inserted, deleted int
	binary            bool
	before, after     int // bytes, when binary
}

func (g *call) statOf(c change) (s stats, err error) {
	a, b, err := g.texts(c)
	if err != nil {
		return s, err
	}
	if isBinary(a) || isBinary(b) {
		return stats{binary: true, before: len(a), after: len(b)}, nil
	}
	err = g.Aside(func() error {
		t, err := compare.NewTexts(g.ctx, g.Call, a, b)
		if err == nil {
			s = stats{inserted: t.Inserted, deleted: t.Deleted}
		}
		return err
	})
	return s, err
}

// statWidth is how wide --stat may be where there is no terminal.
const statWidth = 80

// statName is how --stat names a change.
func statName(c change) string {
	if c.old == "" {
		return quotePath(c.path)
	}
	a, b := c.old, c.path
	head := 0
	for i := 0; i < len(a) && i < len(b) && a[i] == b[i]; i++ {
		if a[i] == '/' {
			head = i + 1
		}
	}
	tail := 0
	for i := 1; i <= len(a)-head && i <= len(b)-head && a[len(a)-i] == b[len(b)-i]; i++ {
		if a[len(a)-i] == '/' {
			tail = i
		}
	}
	if head == 0 && tail == 0 {
		return a + " => " + b
	}
	return a[:head] + "{" + a[head:len(a)-tail] + " => " + b[head:len(b)-tail] + "}" + a[len(a)-tail:]
}

// stat draws how much each file changed.
func (g *call) stat(list []change) error {
	all := make([]stats, len(list))
	nameWidth, most, binaryWidth := 0, 0, 0
	for i, c := range list {
		var err error
		if all[i], err = g.statOf(c); err != nil {
			return err
		}
		nameWidth = max(nameWidth, len(statName(c)))
		if all[i].binary {
			binaryWidth = max(binaryWidth, len(fmt.Sprintf("Bin %d -> %d bytes", all[i].before, all[i].after)))
		} else {
			most = max(most, all[i].inserted+all[i].deleted)
		}
	}
	numberWidth := len(strconv.Itoa(most))
	if binaryWidth > 0 {
		numberWidth = max(numberWidth, 3)
	}
	graph := max(most, binaryWidth-numberWidth-1)
	if nameWidth+numberWidth+6+graph > statWidth {
		if limit := statWidth*3/8 - numberWidth - 6; graph > limit {
			graph = max(limit, 6)
		}
		if nameWidth > statWidth-numberWidth-6-graph {
			nameWidth = statWidth - numberWidth - 6 - graph
		} else {
			graph = statWidth - numberWidth - 6 - nameWidth
		}
	}
	for i, c := range list {
		name := statName(c)
		if len(name) > nameWidth {
			cut := name[len(name)-nameWidth+3:]
			if j := strings.IndexByte(cut, '/'); j >= 0 {
				cut = cut[j:]
			}
			name = "..." + cut
		}
		_ = g.print(" %-*s |", nameWidth, name)
		if s := all[i]; s.binary {
			_ = g.print(" %*s %d -> %d bytes\n", numberWidth, "Bin", s.before, s.after)
		} else {
			plus, minus := scaled(s, most, graph)
			text := fmt.Sprintf(" %*d %s%s", numberWidth, s.inserted+s.deleted, strings.Repeat("+", plus), strings.Repeat("-", minus))
			if s.inserted+s.deleted == 0 {
				text = strings.TrimRight(text, " ")
			}
			_ = g.print("%s\n", text)
		}
	}
	return g.totals(all)
}

// scaled returns how many signs stand for what changed.
func scaled(s stats, most, width int) (plus, minus int) {
	if most <= width {
		return s.inserted, s.deleted
	}
	scale := func(n int) int {
		if n == 0 {
			return 0
		}
		return 1 + n*(width-1)/most
	}
	total := scale(s.inserted + s.deleted)
	if total < 2 && s.inserted > 0 && s.deleted > 0 {
		total = 2
	}
	if s.inserted < s.deleted {
		plus = scale(s.inserted)
		return plus, total - plus
	}
	minus = scale(s.deleted)
	return total - minus, minus
}

func (g *call) shortStat(list []change) error {
	all := make([]stats, len(list))
	for i, c := range list {
		var err error
		if all[i], err = g.statOf(c); err != nil {
			return err
		}
	}
	return g.totals(all)
}

func (g *call) totals(all []stats) error {
	if len(all) == 0 {
		return nil
	}
	inserted, deleted := 0, 0
	for _, s := range all {
		inserted, deleted = inserted+s.inserted, deleted+s.deleted
	}
	text := " " + counted(len(all), "file", "files") + " changed"
	if inserted > 0 || deleted == 0 {
		text += ", " + counted(inserted, "insertion(+)", "insertions(+)")
	}
	if deleted > 0 || inserted == 0 {
		text += ", " + counted(deleted, "deletion(-)", "deletions(-)")
	}
	return g.print("%s\n", text)
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

func (g *call) numStat(list []change) error {
	for _, c := range list {
		s, err := g.statOf(c)
		if err != nil {
			return err
		}
		if s.binary {
			_ = g.print("-\t-\t%s\n", statName(c))
		} else {
			_ = g.print("%d\t%d\t%s\n", s.inserted, s.deleted, statName(c))
		}
	}
	return nil
}

// summary says which files came, went and changed their mode.
func (g *call) summary(list []change) error {
	for _, c := range list {
		switch {
		case c.old != "":
			_ = g.print(" rename %s (%d%%)\n", statName(c), c.score)
			if c.from.mode != c.to.mode {
				_ = g.print(" mode change %06o => %06o\n", uint32(c.from.mode), uint32(c.to.mode))
			}
		case c.from.mode == 0:
			_ = g.print(" create mode %06o %s\n", uint32(c.to.mode), quotePath(c.path))
		case c.to.mode == 0:
			_ = g.print(" delete mode %06o %s\n", uint32(c.from.mode), quotePath(c.path))
		case c.from.mode != c.to.mode:
			_ = g.print(" mode change %06o => %06o %s\n", uint32(c.from.mode), uint32(c.to.mode), quotePath(c.path))
		}
	}
	return nil
}

// commitChanges compares a commit with its first parent.
func (g *call) commitChanges(c *object.Commit, within []scope) ([]change, error) {
	parent := plumbing.ZeroHash
	if len(c.ParentHashes) > 0 {
		parent = c.ParentHashes[0]
	}
	old, err := g.commitSnapshot(parent)
	if err != nil {
		return nil, err
	}
	now, err := g.treeSnapshot(c.TreeHash)
	if err != nil {
		return nil, err
	}
	return g.diffed(old, now, within)
}
