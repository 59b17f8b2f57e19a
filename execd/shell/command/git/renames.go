package git

import (
	"cmp"
	"path"
	"slices"
)

const (
	// maxScore is how alike the same bytes are, and minScore how alike a file must be to one that went to be that one.
	maxScore, minScore = 60000, maxScore / 2
	// maxPairs is how many pairs of files are compared: git's limit of 1000 on each side.
	maxPairs = 1000 * 1000
	// maxAlike is the largest file that is compared.
	maxAlike = 32 << 20
	// spanSize and spanBase make the spans of a file: lines, or 64 bytes of longer ones, as a number below the base.
	spanSize, spanBase = 64, 107927
)

// diffed compares snapshots as changes does, and takes a file that came for one that went when they are alike.
func (g *call) diffed(from, to snapshot, within []scope) ([]change, error) {
	return g.pairAlike(changes(from, to, within, true))
}

// spans is how many bytes of a file are in spans of each number, in the order of the numbers.
type spans struct {
	size  int
	count []spanCount
}

type spanCount struct {
	number uint32
	bytes  int
}

// spansOf cuts a file into spans. What follows the last whole one does not count, as it does not for git.
func spansOf(data []byte) *spans {
	s := &spans{size: len(data)}
	isText := !isBinary(data)
	count := map[uint32]int{}
	var a, b uint32
	n := 0
	for i, c := range data {
		if isText && c == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			continue
		}
		a, b = a<<7^b>>25+uint32(c), b<<7^a>>25
		if n++; n < spanSize && c != '\n' {
			continue
		}
		count[(a+b*0x61)%spanBase] += n
		n, a, b = 0, 0, 0
	}
	for number, bytes := range count {
		s.count = append(s.count, spanCount{number, bytes})
	}
	slices.SortFunc(s.count, func(x, y spanCount) int { return cmp.Compare(x.number, y.number) })
	return s
}

// alike is how much of the larger of two files is in the other.
func alike(src, dst *spans) int {
	large, small := max(src.size, dst.size), min(src.size, dst.size)
	if small == 0 || large*(maxScore-minScore) < (large-small)*maxScore {
		return 0
	}
	copied, i := 0, 0
	for _, s := range src.count {
		for i < len(dst.count) && dst.count[i].number < s.number {
			i++
		}
		if i < len(dst.count) && dst.count[i].number == s.number {
			copied += min(s.bytes, dst.count[i].bytes)
		}
	}
	return copied * maxScore / large
}

// pair is a file that went and one that came, and how alike they are.
type pair struct {
	from, to, score int
	sameName        bool
}

// pairAlike makes one change of a file that went and one that came, the most alike first.
func (g *call) pairAlike(list []change) ([]change, error) {
	var gone, come []int
	for i, c := range list {
		switch {
		case c.to.none() && text(c.from.mode):
			gone = append(gone, i)
		case c.from.none() && text(c.to.mode):
			come = append(come, i)
		}
	}
	if len(gone)*len(come) == 0 || len(gone)*len(come) > maxPairs || !g.enabled("diff.renames", true) {
		return list, nil
	}
	cut := map[int]*spans{}
	for _, i := range slices.Concat(gone, come) {
		e := list[i].from
		if e.none() {
			e = list[i].to
		}
		data, err := g.data(list[i].path, e)
		if err != nil {
			return nil, err
		}
		if err := g.Step(g.ctx, 1+len(data)>>6); err != nil {
			return nil, err
		}
		if len(data) > maxAlike {
			data = nil
		}
		cut[i] = spansOf(data)
	}
	var pairs []pair
	for _, to := range come {
		for _, from := range gone {
			if err := g.Step(g.ctx, 1+len(cut[from].count)>>6); err != nil {
				return nil, err
			}
			if score := alike(cut[from], cut[to]); score >= minScore {
				pairs = append(pairs, pair{from, to, score, path.Base(list[from].path) == path.Base(list[to].path)})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		if a.score != b.score || a.sameName == b.sameName {
			return b.score - a.score
		}
		if a.sameName {
			return -1
		}
		return 1
	})
	used := map[int]bool{}
	for _, p := range pairs {
		if !used[p.from] && !used[p.to] {
			used[p.from], used[p.to] = true, true
			list[p.to].old, list[p.to].from, list[p.to].score = list[p.from].path, list[p.from].from, p.score*100/maxScore
			list[p.from].path = ""
		}
	}
	return slices.DeleteFunc(list, func(c change) bool { return c.path == "" }), nil
}
