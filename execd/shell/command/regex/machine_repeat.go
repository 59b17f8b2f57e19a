package regex

// repeat compiles x*, x{m,n} and their like.
func (p *program) repeat(n *node, next step) step {
	if one := n.subs[0].single(); one != nil {
		return repeatSingle(n, one, next)
	}
	id := p.loops
	p.loops++
	var again step
	body := p.compile(n.subs[0], func(m *machine, pos int) bool { return again(m, pos) })
	again = func(m *machine, pos int) bool { return m.iterate(n, id, pos, body, next) }
	return func(m *machine, pos int) bool {
		saved := m.loops[id]
		m.loops[id] = loop{0, -1}
		if again(m, pos) {
			return true
		}
		m.loops[id] = saved
		return false
	}
}

// iterate stands between two rounds of a loop: another round, or what follows, in the order of the loop's greed. A round
// that matched nothing is not followed by another.
func (m *machine) iterate(n *node, id, pos int, body, next step) bool {
	if !m.tick() {
		return false
	}
	if m.depth++; m.depth > maxNesting {
		m.err = ErrCost
		return false
	}
	defer func() { m.depth-- }()
	state := m.loops[id]
	enough := state.count >= n.min
	may := (n.max == unlimited || state.count < n.max) && (!enough || pos != state.start)
	if n.lazy && enough && next(m, pos) {
		return true
	}
	if may {
		m.loops[id] = loop{state.count + 1, pos}
		if body(m, pos) {
			return true
		}
		m.loops[id] = state
	}
	return !n.lazy && enough && next(m, pos)
}

// repeatSingle repeats what takes characters without choice: it needs no recursion.
func repeatSingle(n *node, one func(*machine, int) int, next step) step {
	if n.lazy {
		return repeatLazy(n, one, next)
	}
	return func(m *machine, pos int) bool {
		at, count := pos, 0
		for (n.max == unlimited || count < n.max) && m.tick() {
			size := one(m, at)
			if size <= 0 {
				break
			}
			at, count = at+size, count+1
		}
		for ; count >= n.min; count-- {
			if !m.tick() {
				return false
			}
			if next(m, at) {
				return true
			}
			if count == 0 {
				break
			}
			at = m.back(n.subs[0], pos, at)
		}
		return false
	}
}

// back returns where the last of the repeated characters before at begins.
func (m *machine) back(n *node, start, at int) int {
	if n.op == opLiteral && !n.fold {
		return at - len(n.text)
	}
	return start + lastStart(m.text[start:at], n)
}

func repeatLazy(n *node, one func(*machine, int) int, next step) step {
	return func(m *machine, pos int) bool {
		for count := 0; ; count++ {
			if count >= n.min && next(m, pos) {
				return true
			}
			if !m.tick() || n.max != unlimited && count >= n.max {
				return false
			}
			size := one(m, pos)
			if size <= 0 {
				return false
			}
			pos += size
		}
	}
}
