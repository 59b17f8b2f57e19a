package sed

// selects says whether a command is for the present line, and keeps account of its range.
func (m *machine) selects(in *instruction) (bool, error) {
	selected, err := m.inRange(in)
	return selected != in.negate, err
}

func (m *machine) inRange(in *instruction) (bool, error) {
	switch {
	case in.from == nil:
		return true, nil
	case in.to == nil:
		return m.matches(in.from)
	case in.active:
		return m.continues(in)
	}
	if in.from.kind == atZero && m.in.line == 1 && !in.active {
		in.active = true
		return m.continues(in)
	}
	starts, err := m.matches(in.from)
	if err != nil || !starts {
		return false, err
	}
	in.active = true
	line := m.in.line
	switch to := in.to; to.kind {
	case atLine:
		in.active = to.n > line
	case plusLines:
		in.until = line + to.n
		in.active = to.n > 0
	case multiple:
		in.until = line
		if to.n > 0 {
			in.until = (line/to.n + 1) * to.n // GNU's: from a multiple on to the next one
		}
		in.active = in.until > line
	case atLast:
		in.active = m.in.more()
	}
	return true, nil
}

// continues says whether a range that has begun includes this line, and ends it where it ends.
func (m *machine) continues(in *instruction) (bool, error) {
	line := m.in.line
	switch to := in.to; to.kind {
	case atLine:
		if line >= to.n {
			in.active = false
		}
		return line <= to.n, nil
	case plusLines, multiple:
		in.active = line < in.until
		return true, nil
	default:
		ends, err := m.matches(to)
		in.active = !ends
		return true, err
	}
}

func (m *machine) matches(a *address) (bool, error) {
	line := m.in.line
	switch a.kind {
	case atLine:
		return line == a.n, nil
	case atStep:
		if a.step <= 0 {
			return line == a.n, nil
		}
		return line >= a.n && (line-a.n)%a.step == 0, nil
	case atLast:
		return !m.in.more(), m.in.err
	case atRegex:
		re, err := m.pattern(a.re)
		if err != nil {
			return false, err
		}
		return re.Match(m.space)
	}
	return false, nil
}
