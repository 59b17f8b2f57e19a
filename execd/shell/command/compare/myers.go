package compare

// change says that lines a to a+deleted of one file stand where b to b+inserted of the other do.
type change struct{ a, deleted, b, inserted int }

// maxCost is how far apart two files may be before the search for a shortest list of edits gives up on it: its time grows
// with the square of the distance.
const maxCost = 4096

// differ finds edits between two lists of numbers.
type differ struct {
	a, b          []int
	deleted       []bool // of a's lines
	inserted      []bool
	forward, back []int
	step          func(n int) error
	err           error
}

// edits returns the changes that make b of a.
func edits(a, b []int, step func(int) error) ([]change, error) {
	d := &differ{a: a, b: b, deleted: make([]bool, len(a)), inserted: make([]bool, len(b)), step: step}
	size := 2*(len(a)+len(b)) + 4
	d.forward, d.back = make([]int, size), make([]int, size)
	d.compare(0, len(a), 0, len(b))
	if d.err != nil {
		return nil, d.err
	}
	d.slide()
	return d.changes(), nil
}

// compare marks what differs between a[alo:ahi] and b[blo:bhi].
func (d *differ) compare(alo, ahi, blo, bhi int) {
	for alo < ahi && blo < bhi && d.a[alo] == d.b[blo] {
		alo, blo = alo+1, blo+1
	}
	for alo < ahi && blo < bhi && d.a[ahi-1] == d.b[bhi-1] {
		ahi, bhi = ahi-1, bhi-1
	}
	switch {
	case d.err != nil:
	case alo == ahi:
		for i := blo; i < bhi; i++ {
			d.inserted[i] = true
		}
	case blo == bhi:
		for i := alo; i < ahi; i++ {
			d.deleted[i] = true
		}
	default:
		x, y, ok := d.middle(alo, ahi, blo, bhi)
		if !ok {
			for i := alo; i < ahi; i++ {
				d.deleted[i] = true
			}
			for i := blo; i < bhi; i++ {
				d.inserted[i] = true
			}
			return
		}
		d.compare(alo, x, blo, y)
		d.compare(x, ahi, y, bhi)
	}
}

// middle finds a point on a shortest path by going from both ends until they meet. Without one within the bound it
// returns the point of either path that is furthest along, or false.
func (d *differ) middle(alo, ahi, blo, bhi int) (x, y int, ok bool) {
	n, m := ahi-alo, bhi-blo
	delta, offset := n-m, m+1
	odd := delta&1 != 0
	f, r := d.forward, d.back
	limit := (n + m + 1) / 2
	f[offset+1], r[offset+1] = 0, 0
	for cost := 0; cost <= limit; cost++ {
		if d.err = d.step(1 + cost>>4); d.err != nil {
			return 0, 0, false
		}
		if cost > maxCost {
			return d.furthest(alo, blo, n, m, cost-1, offset)
		}
		for k := cost; k >= -cost; k -= 2 { // downwards: GNU's choice among equals
			if k < -m || k > n {
				continue
			}
			i := d.reach(f, offset, k, cost)
			j := i - k
			for i < n && j < m && j >= 0 && d.a[alo+i] == d.b[blo+j] {
				i, j = i+1, j+1
			}
			f[offset+k] = i
			if back := delta - k; odd && back >= -(cost-1) && back <= cost-1 && back >= -m && back <= n && i+r[offset+back] >= n {
				return alo + i, blo + i - k, true
			}
		}
		for k := -cost; k <= cost; k += 2 {
			if k < -m || k > n {
				continue
			}
			i := d.reach(r, offset, k, cost)
			j := i - k
			for i < n && j < m && j >= 0 && d.a[ahi-1-i] == d.b[bhi-1-j] {
				i, j = i+1, j+1
			}
			r[offset+k] = i
			if front := delta - k; !odd && front >= -cost && front <= cost && front >= -m && front <= n && i+f[offset+front] >= n {
				return ahi - i, bhi - (i - k), true
			}
		}
	}
	return 0, 0, false
}

// reach returns how far along the first file diagonal k gets with one more edit, before any match.
func (d *differ) reach(v []int, offset, k, cost int) int {
	if k == -cost || k != cost && v[offset+k-1] < v[offset+k+1] {
		return v[offset+k+1]
	}
	return v[offset+k-1] + 1
}

func (d *differ) furthest(alo, blo, n, m, cost, offset int) (x, y int, ok bool) {
	best, at := -1, 0
	for k := max(-cost, -m); k <= min(cost, n); k++ {
		if (k-cost)&1 != 0 {
			continue
		}
		i := min(d.forward[offset+k], n)
		j := i - k
		if j >= 0 && j <= m && i+j > best {
			best, at = i+j, k
		}
	}
	if best <= 0 {
		return 0, 0, false
	}
	i := min(d.forward[offset+at], n)
	return alo + i, blo + i - at, true
}

// slide moves each run of edits as far down as it goes, where it reads best, and joins runs that meet: the way in which
// GNU's diff chooses among lists of the same length.
func (d *differ) slide() {
	slideRuns(d.a, d.deleted, d.inserted)
	slideRuns(d.b, d.inserted, d.deleted)
}

func slideRuns(lines []int, changed, other []bool) {
	i, j := 0, 0
	for {
		for i < len(lines) && !changed[i] {
			for j < len(other) && other[j] {
				j++
			}
			i, j = i+1, j+1
		}
		if i >= len(lines) {
			return
		}
		start := i
		for i < len(lines) && changed[i] {
			i++
		}
		for j < len(other) && other[j] {
			j++
		}
		for {
			length := i - start
			// Up, as far as it goes, joining what it meets.
			for start > 0 && lines[start-1] == lines[i-1] {
				start, i = start-1, i-1
				changed[start], changed[i] = true, false
				for start > 0 && changed[start-1] {
					start--
				}
				for j--; j > 0 && other[j-1] && other[j]; j-- {
					continue
				}
				for j > 0 && other[j] {
					j--
				}
			}
			corresponding := -1
			if j > 0 && other[j-1] {
				corresponding = i
			}
			// Down again, to the last place that still fits.
			for i < len(lines) && lines[start] == lines[i] {
				changed[start], changed[i] = false, true
				start, i = start+1, i+1
				for i < len(lines) && changed[i] {
					i++
				}
				for j++; j < len(other) && other[j]; j++ {
					corresponding = i
				}
			}
			if length == i-start {
				for corresponding >= 0 && corresponding < i {
					start, i = start-1, i-1
					changed[start], changed[i] = true, false
					for j--; j > 0 && other[j]; j-- {
						continue
					}
				}
				break
			}
		}
	}
}

func (d *differ) changes() []change {
	var all []change
	i, j := 0, 0
	for i < len(d.a) || j < len(d.b) {
		if i < len(d.a) && d.deleted[i] || j < len(d.b) && d.inserted[j] {
			c := change{a: i, b: j}
			for i < len(d.a) && d.deleted[i] {
				i++
			}
			for j < len(d.b) && d.inserted[j] {
				j++
			}
			c.deleted, c.inserted = i-c.a, j-c.b
			all = append(all, c)
			continue
		}
		i, j = i+1, j+1
	}
	return all
}
