package git

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/carrelfs/carrel/execd/shell/command/compare"
)

// combined is how one file differs from what several parents have: git-diff(1), combined diff format.
type combined struct {
	path    string
	parents []entry
	result  entry // of the work tree, or of a commit
}

// combinedLine is a line of the result, with the lines before it that parents have and it has not. The last one is none of
// the result's: it has the lines that follow the others.
type combinedLine struct {
	text   []byte
	added  uint64     // to which parents, a bit for each
	lost   []lostLine // in order
	number []int      // of the line in each parent
	shown  bool
	bare   bool // without the lost lines: it is only context
}

type lostLine struct {
	text []byte
	from uint64 // of which parents, a bit for each
}

// maxCoalesced bounds the lines that are matched with others at one place, by the product of their numbers.
const maxCoalesced = 1 << 22

// combinedOf are the files of a merge that it has in another way than each of its parents.
func (g *call) combinedOf(c *object.Commit, within []scope) ([]combined, error) {
	now, err := g.treeSnapshot(c.TreeHash)
	if err != nil {
		return nil, err
	}
	all := map[string][]entry{}
	for i, h := range c.ParentHashes {
		old, err := g.commitSnapshot(h)
		if err != nil {
			return nil, err
		}
		for _, d := range changes(old, now, within, false) {
			if len(all[d.path]) == i {
				all[d.path] = append(all[d.path], d.from)
			}
		}
	}
	var list []combined
	for name, parents := range all {
		if len(parents) == len(c.ParentHashes) {
			list = append(list, combined{name, parents, now[name]})
		}
	}
	slices.SortFunc(list, func(a, b combined) int { return strings.Compare(a.path, b.path) })
	return list, nil
}

// printCombined prints a combined diff, of which hunks are left out that are as one of the parents has them.
func (g *call) printCombined(c combined, context int) error {
	result, texts, binary, err := g.combinedTexts(c)
	if err != nil {
		return err
	}
	lines, err := g.combine(result, texts)
	if err != nil {
		return err
	}
	chooseCombined(lines, len(texts), context)
	hunks := slices.ContainsFunc(lines, func(l combinedLine) bool { return l.shown })
	modes := slices.ContainsFunc(c.parents, func(p entry) bool { return p.mode != c.result.mode })
	if !hunks && !modes && !c.result.file && !binary {
		return nil
	}
	g.combinedHeader(c, modes)
	if binary {
		return g.print("Binary files differ\n")
	}
	from, to := "a/"+c.path, "b/"+c.path
	if !slices.ContainsFunc(c.parents, func(p entry) bool { return !p.none() }) {
		from = ""
	}
	if c.result.none() {
		to = ""
	}
	for _, side := range []struct{ mark, name string }{{"---", from}, {"+++", to}} {
		name := "/dev/null"
		if side.name != "" {
			name = tabbed(quotePath(side.name))
		}
		_ = g.print("%s %s\n", side.mark, name)
	}
	if c.result.none() {
		return nil
	}
	return g.combinedHunks(lines, len(texts))
}

// combinedTexts reads the result and what the parents have.
func (g *call) combinedTexts(c combined) (result []byte, texts [][]byte, binary bool, err error) {
	if !c.result.none() {
		if result, err = g.data(c.path, c.result); err != nil {
			return nil, nil, false, err
		}
	}
	binary = isBinary(result)
	for _, p := range c.parents {
		var text []byte
		if !p.none() {
			if text, err = g.data(c.path, p); err != nil {
				return nil, nil, false, err
			}
		}
		binary = binary || isBinary(text)
		texts = append(texts, text)
	}
	return result, texts, binary, nil
}

// combinedHeader says what file it is and which objects are compared.
func (g *call) combinedHeader(c combined, modes bool) {
	var hashes, kinds []string
	added := true
	for _, p := range c.parents {
		hashes, kinds = append(hashes, g.abbreviate(p)), append(kinds, fmt.Sprintf("%06o", uint32(p.mode)))
		added = added && p.none()
	}
	to := g.abbreviate(c.result)
	if c.result.file {
		to = g.abbreviate(entry{}) // it may be no object
	}
	_ = g.print("diff --cc %s\nindex %s..%s\n", quotePath(c.path), strings.Join(hashes, ","), to)
	switch {
	case added:
		_ = g.print("new file mode %06o\n", uint32(c.result.mode))
	case c.result.none():
		_ = g.print("deleted file mode %s\n", strings.Join(kinds, ","))
	case modes:
		_ = g.print("mode %s..%06o\n", strings.Join(kinds, ","), uint32(c.result.mode))
	}
}

// combine compares a result with every parent.
func (g *call) combine(result []byte, parents [][]byte) ([]combinedLine, error) {
	var lines []combinedLine
	for text := range bytes.Lines(result) {
		lines = append(lines, combinedLine{text: bytes.TrimSuffix(text, []byte("\n"))})
	}
	if err := g.afford(int64(len(lines)) * 128); err != nil {
		return nil, err
	}
	lines = append(lines, combinedLine{})
	for i, parent := range parents {
		bit := uint64(1) << i
		t, err := compare.NewTexts(g.ctx, g.Call, parent, result)
		if err != nil {
			return nil, err
		}
		old := linesOf(parent)
		for _, e := range t.Edits() {
			for at := e.B; at < e.B+e.Inserted; at++ {
				lines[at].added |= bit
			}
			var lost []lostLine
			for _, text := range old[e.A : e.A+e.Deleted] {
				lost = append(lost, lostLine{[]byte(strings.TrimSuffix(text, "\n")), bit})
			}
			if lines[e.B].lost, err = g.coalesce(lines[e.B].lost, lost); err != nil {
				return nil, err
			}
		}
		number := 1
		for at := range lines {
			lines[at].number = append(lines[at].number, number)
			for _, l := range lines[at].lost {
				if l.from&bit != 0 {
					number++
				}
			}
			if at < len(lines)-1 && lines[at].added&bit == 0 {
				number++
			}
		}
	}
	return lines, nil
}

// coalesce makes one line of those that several parents have lost at one place, along the longest sequence that they share.
func (g *call) coalesce(base, more []lostLine) ([]lostLine, error) {
	if len(base) == 0 || len(more) == 0 || len(base)*len(more) > maxCoalesced {
		return append(base, more...), nil
	}
	if err := g.Step(g.ctx, 1+len(base)*len(more)>>4); err != nil {
		return nil, err
	}
	width := len(more) + 1
	longest := make([]int32, (len(base)+1)*width)
	for i := 1; i <= len(base); i++ {
		for j := 1; j <= len(more); j++ {
			if bytes.Equal(base[i-1].text, more[j-1].text) {
				longest[i*width+j] = longest[(i-1)*width+j-1] + 1
			} else {
				longest[i*width+j] = max(longest[i*width+j-1], longest[(i-1)*width+j])
			}
		}
	}
	var out []lostLine
	i, j := len(base), len(more)
	for i > 0 || j > 0 {
		switch {
		case i > 0 && j > 0 && bytes.Equal(base[i-1].text, more[j-1].text):
			i, j = i-1, j-1
			out = append(out, lostLine{base[i].text, base[i].from | more[j].from})
		case i == 0 || j > 0 && longest[i*width+j-1] >= longest[(i-1)*width+j]:
			j--
			out = append(out, more[j])
		default:
			i--
			out = append(out, base[i])
		}
	}
	slices.Reverse(out)
	return out, nil
}

// chooseCombined decides which lines are shown: those around differences, but for hunks that are as some parents have them
// where the others differ all in one way.
func chooseCombined(lines []combinedLine, parents, context int) {
	for i := range lines {
		lines[i].shown = lines[i].added != 0 || len(lines[i].lost) > 0
	}
	for begin := nextLine(lines, 0, true); begin < len(lines); begin = nextLine(lines, begin, true) {
		end := hunkEnd(lines, begin, context)
		if !worthShowing(lines[begin:end], parents) {
			for i := begin; i < end; i++ {
				lines[i].shown = false
			}
		}
		begin = end
	}
	giveContext(lines, context)
}

// nextLine finds the next line from one on that is shown, or is not.
func nextLine(lines []combinedLine, from int, shown bool) int {
	for from < len(lines) && lines[from].shown != shown {
		from++
	}
	return from
}

// tailOf is where the context behind a hunk begins: with its last line, when only the lines before that were lost.
func tailOf(lines []combinedLine, begin, end int) int {
	if begin+1 <= end && lines[end-1].added == 0 {
		return end - 1
	}
	return end
}

// hunkEnd finds the end of a hunk, with those that follow within the context.
func hunkEnd(lines []combinedLine, begin, context int) int {
	end := begin + 1
	for ; end < len(lines); end++ {
		if lines[end].shown {
			continue
		}
		ahead := min(tailOf(lines, begin, end)+context, len(lines)) - 1
		for ahead >= end && !lines[ahead].shown {
			ahead--
		}
		if ahead < end {
			break
		}
		end = ahead
	}
	return end
}

// worthShowing says whether a hunk is more than what one side has.
func worthShowing(hunk []combinedLine, parents int) bool {
	same := uint64(0)
	differs := func(from uint64) bool {
		if same == 0 {
			same = from
		}
		return from != 0 && from != same
	}
	for _, l := range hunk {
		if differs(l.added) || slices.ContainsFunc(l.lost, func(o lostLine) bool { return differs(o.from) }) {
			return true
		}
	}
	return same == uint64(1)<<parents-1
}

// giveContext shows lines around those that are shown, and joins hunks with a short gap.
func giveContext(lines []combinedLine, context int) {
	for i := nextLine(lines, 0, true); i < len(lines); {
		for j := max(i-context, 0); j < i; j++ {
			lines[j].bare = lines[j].bare || !lines[j].shown
			lines[j].shown = true
		}
		for {
			j := nextLine(lines, i, false)
			if j == len(lines) {
				return
			}
			k := nextLine(lines, j, true)
			j = tailOf(lines, i, j)
			if k < j+context {
				for ; j < k; j++ {
					lines[j].shown = true
				}
				i = k
				continue
			}
			i = k
			for end := min(j+context, len(lines)); j < end; j++ {
				lines[j].shown = true
			}
			break
		}
	}
}

// combinedHunks prints what is shown.
func (g *call) combinedHunks(lines []combinedLine, parents int) error {
	last := len(lines) - 1
	at := strings.Repeat("@", parents+1)
	section := ""
	for i := 0; ; {
		for ; i <= last && !lines[i].shown; i++ {
			if s := combinedSection(lines[i].text); s != "" {
				section = s
			}
		}
		if i > last {
			return nil
		}
		end := nextLine(lines, i, false)
		_ = g.print("%s", at)
		for p := range parents {
			_ = g.print(" -%d,%d", lines[i].number[p], numberAt(lines, end, p)-lines[i].number[p])
		}
		_ = g.print(" +%d,%d %s%s\n", i+1, min(end, last)-i, at, section)
		section = ""
		for ; i < end; i++ {
			if err := g.combinedLine(lines[i], parents, i == last); err != nil {
				return err
			}
		}
	}
}

// numberAt is the number in a parent of what a line of the result follows, or of the end.
func numberAt(lines []combinedLine, i, parent int) int {
	if i < len(lines) {
		return lines[i].number[parent]
	}
	end := lines[len(lines)-1]
	n := end.number[parent]
	for _, l := range end.lost {
		if l.from&(1<<parent) != 0 {
			n++
		}
	}
	return n
}

// combinedLine prints a line with those that were lost before it.
func (g *call) combinedLine(l combinedLine, parents int, last bool) error {
	marks := func(of uint64, mark byte) string {
		b := bytes.Repeat([]byte{' '}, parents)
		for p := range b {
			if of&(1<<p) != 0 {
				b[p] = mark
			}
		}
		return string(b)
	}
	if !l.bare {
		for _, o := range l.lost {
			_ = g.print("%s%s\n", marks(o.from, '-'), o.text)
		}
	}
	if last {
		return nil
	}
	return g.print("%s%s\n", marks(l.added, '+'), l.text)
}

// combinedSection is what a line says of the hunk that follows it: the beginning of one like a function's, of which git
// leaves out the last letter.
func combinedSection(line []byte) string {
	if len(line) == 0 || line[0] != '_' && line[0] != '$' && (line[0]|0x20 < 'a' || line[0]|0x20 > 'z') {
		return ""
	}
	line = bytes.TrimRight(line[:min(len(line), 40)], " \t\r\v\f")
	if len(line) < 2 {
		return ""
	}
	return " " + string(line[:len(line)-1])
}

// printMerged prints what a merge has in another way than all of its parents.
func (g *call) printMerged(c *object.Commit, l *listing) error {
	list, err := g.combinedOf(c, l.within)
	if err != nil {
		return err
	}
	if l.format != "" {
		_ = g.print("\n")
	}
	for _, d := range list {
		if err := g.Aside(func() error { return g.printCombined(d, l.context) }); err != nil {
			return err
		}
	}
	return nil
}

// printUnmerged prints how the work tree differs from both sides of files that are not merged, and then the names of those
// that one side has not.
func (g *call) printUnmerged(names []string, context int) error {
	x, err := g.readIndex()
	if err != nil {
		return err
	}
	all := unmerged(x)
	var halves []string
	for _, name := range names {
		stages := all[name]
		sides := stages[stageOurs : stageTheirs+1]
		if sides[0].none() || sides[1].none() {
			halves = append(halves, name)
			continue
		}
		now, err := g.workEntry(name, nil)
		if err != nil && !notThere(err) {
			return err
		}
		if err := g.Aside(func() error { return g.printCombined(combined{name, sides, now}, context) }); err != nil {
			return err
		}
	}
	for _, name := range halves {
		_ = g.print("* Unmerged path %s\n", quotePath(name))
	}
	return nil
}
