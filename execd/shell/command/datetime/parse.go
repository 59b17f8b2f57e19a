package datetime

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Parse reads a time as date -d does: ISO 8601, RFC 5322, month names, @seconds, times of day, "tomorrow", "next friday",
// "2 weeks ago" and what can be made of such parts. now is where relative ones start, and its location is the zone of
// what names none.
func Parse(text string, now time.Time) (time.Time, error) {
	p := &dateParser{words: lexDate(text), now: now, zone: now.Location()}
	for len(p.words) > 0 {
		if !p.item() {
			return time.Time{}, fmt.Errorf("invalid date '%s'", text)
		}
	}
	if !p.valid() {
		return time.Time{}, fmt.Errorf("invalid date '%s'", text)
	}
	return p.result(), nil
}

// lexDate cuts a text into words, numbers and punctuation, all in lower case.
func lexDate(text string) []string {
	var words []string
	for i := 0; i < len(text); {
		kind := charKind(text[i])
		start := i
		for i++; i < len(text) && kind > 1 && charKind(text[i]) == kind; i++ {
			continue
		}
		switch {
		case kind == 0:
		case text[start] == '(':
			if j := strings.IndexByte(text[start:], ')'); j > 0 {
				i = start + j + 1
			}
		default:
			words = append(words, strings.ToLower(text[start:i]))
		}
	}
	return words
}

func charKind(c byte) int {
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == ',':
		return 0
	case c >= '0' && c <= '9':
		return 2
	case unicode.IsLetter(rune(c)):
		return 3
	}
	return 1
}

type dateParser struct {
	words []string
	now   time.Time
	zone  *time.Location

	absolute             *time.Time // @seconds
	year, month, day     int
	hasDate, hasTime     bool
	hour, minute, second int
	nanosecond           int
	weekday, weeks       int
	hasWeekday           bool
	years, months, days  int // relative
	shift                time.Duration
}

func (p *dateParser) word(i int) string {
	if i < len(p.words) {
		return p.words[i]
	}
	return ""
}

func (p *dateParser) drop(n int) bool {
	p.words = p.words[n:]
	return true
}

func (p *dateParser) num(i int) (int, bool) {
	n, err := strconv.Atoi(p.word(i))
	return n, err == nil && p.word(i)[0] != '-' && p.word(i)[0] != '+'
}

// item reads one part.
func (p *dateParser) item() bool {
	w := p.word(0)
	if _, number := p.num(0); number {
		return p.number()
	}
	switch {
	case w == "@":
		return p.seconds()
	case w == "+" || w == "-":
		return p.signed()
	case w == "t" && p.hasDate:
		return p.drop(1)
	case w == ".":
		return p.drop(1)
	}
	return p.name(w)
}

// seconds reads @N and @N.NNN, with a sign.
func (p *dateParser) seconds() bool {
	sign, at := int64(1), 1
	if p.word(1) == "-" {
		sign, at = -1, 2
	}
	n, err := strconv.ParseInt(p.word(at), 10, 64)
	if err != nil {
		return false
	}
	nano := int64(0)
	used := at + 1
	if p.word(at+1) == "." {
		nano = fraction(p.word(at + 2))
		used = at + 3
	}
	t := time.Unix(sign*n, sign*nano)
	p.absolute = &t
	return p.drop(min(used, len(p.words)))
}

func fraction(digits string) int64 {
	n, _ := strconv.ParseInt((digits + "000000000")[:9], 10, 64)
	return n
}

// number reads what begins with a number: a date, a time of day, or a count of units.
func (p *dateParser) number() bool {
	n, _ := p.num(0)
	second, isNumber := p.num(2)
	next := p.word(1)
	switch {
	case next == ":" && isNumber:
		return p.clock()
	case next == "-" && isNumber && !p.hasDate:
		third, ok := p.num(4)
		if p.word(3) == "-" && ok {
			if len(p.word(0)) <= 2 {
				p.setDate(century(n, len(p.word(0))), second, third)
			} else {
				p.setDate(n, second, third)
			}
			return p.drop(5)
		}
		return false
	case next == "-" && monthOf(p.word(2)) > 0 && p.word(3) == "-": // 2-Jan-2024
		year, ok := p.num(4)
		p.setDate(century(year, len(p.word(4))), monthOf(p.word(2)), n)
		return ok && p.drop(5)
	case next == "/" && isNumber:
		return p.slashes(n, second)
	case monthOf(next) > 0 && !p.hasDate:
		p.setDate(p.now.Year(), monthOf(next), n)
		p.drop(2)
		p.trailingYear()
		return true
	case next == "am" || next == "pm":
		return p.meridian(n, 0, 0)
	case unitOf(next) != "":
		p.add(n, unitOf(next), 2)
		return true
	case len(p.word(0)) == 8 && !p.hasDate:
		p.setDate(n/10000, n/100%100, n%100)
		return p.drop(1)
	case len(p.word(0)) == 4 && p.hasDate && !p.hasTime:
		p.setTime(n/100, n%100, 0, 0)
		return p.drop(1)
	case len(p.word(0)) <= 2 && !p.hasTime:
		p.setTime(n, 0, 0, 0)
		return p.drop(1)
	}
	return false
}

func century(year, digits int) int {
	if digits > 2 {
		return year
	}
	if year < 69 {
		return 2000 + year
	}
	return 1900 + year
}

// slashes reads month/day[/year] and year/month/day.
func (p *dateParser) slashes(n, second int) bool {
	third, ok := p.num(4)
	if p.word(3) != "/" || !ok {
		p.setDate(p.now.Year(), n, second)
		return p.drop(3)
	}
	if len(p.word(0)) == 4 {
		p.setDate(n, second, third)
	} else {
		p.setDate(century(third, len(p.word(4))), n, second)
	}
	return p.drop(5)
}

// valid says whether there is such a day.
func (p *dateParser) valid() bool {
	if !p.hasDate {
		return true
	}
	t := time.Date(p.year, time.Month(p.month), p.day, 0, 0, 0, 0, time.UTC)
	return int(t.Month()) == p.month && t.Day() == p.day
}

func (p *dateParser) setDate(year, month, day int) {
	p.year, p.month, p.day, p.hasDate = year, month, day, true
}

func (p *dateParser) setTime(hour, minute, second, nano int) {
	p.hour, p.minute, p.second, p.nanosecond, p.hasTime = hour, minute, second, nano, true
}

// clock reads hh:mm[:ss[.n]], am or pm, and a zone.
func (p *dateParser) clock() bool {
	hour, _ := p.num(0)
	minute, _ := p.num(2)
	second, nano := 0, 0
	used := 3
	if s, ok := p.num(4); p.word(3) == ":" && ok {
		second, used = s, 5
		if p.word(5) == "." || p.word(5) == "," {
			nano, used = int(fraction(p.word(6))), 7
		}
	}
	if hour > 24 || minute > 59 || second > 60 {
		return false
	}
	p.drop(min(used, len(p.words)))
	if w := p.word(0); w == "am" || w == "pm" {
		p.words = append([]string{""}, p.words...)
		return p.meridian(hour, minute, second)
	}
	p.setTime(hour, minute, second, nano)
	if w := p.word(0); (w == "+" || w == "-") && unitOf(p.word(2)) == "" && p.word(1) != "" {
		return p.offset()
	}
	return true
}

func (p *dateParser) meridian(hour, minute, second int) bool {
	if hour < 1 || hour > 12 {
		return false
	}
	hour %= 12
	if p.word(1) == "pm" {
		hour += 12
	}
	p.setTime(hour, minute, second, 0)
	return p.drop(2)
}

// offset reads +hh, +hhmm and +hh:mm.
func (p *dateParser) offset() bool {
	sign := 1
	if p.word(0) == "-" {
		sign = -1
	}
	n, ok := p.num(1)
	if !ok {
		return false
	}
	seconds, used := n*3600, 2
	if len(p.word(1)) > 2 {
		seconds = n/100*3600 + n%100*60
	} else if m, ok := p.num(3); p.word(2) == ":" && ok {
		seconds, used = seconds+m*60, 4
	}
	p.zone = time.FixedZone("", sign*seconds)
	return p.drop(used)
}

// signed reads +3 days and -1 week.
func (p *dateParser) signed() bool {
	n, ok := p.num(1)
	unit := unitOf(p.word(2))
	if !ok {
		return false
	}
	if unit == "" {
		if p.hasTime {
			return p.offset()
		}
		return false
	}
	if p.word(0) == "-" {
		n = -n
	}
	p.add(n, unit, 3)
	return true
}

// add counts n units, or back when "ago" follows.
func (p *dateParser) add(n int, unit string, used int) {
	p.drop(used)
	if p.word(0) == "ago" {
		n = -n
		p.drop(1)
	}
	switch unit {
	case "year":
		p.years += n
	case "month":
		p.months += n
	case "fortnight":
		p.days += 14 * n
	case "week":
		p.days += 7 * n
	case "day":
		p.days += n
	case "hour":
		p.shift += time.Duration(n) * time.Hour
	case "minute":
		p.shift += time.Duration(n) * time.Minute
	case "second":
		p.shift += time.Duration(n) * time.Second
	}
}

// ordinals are the words that count.
var ordinals = map[string]int{
	"last": -1, "this": 0, "next": 1, "first": 1, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
	"eighth": 8, "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12,
}

// name reads what begins with a word.
func (p *dateParser) name(w string) bool {
	if n, ok := ordinals[w]; ok {
		if unit := unitOf(p.word(1)); unit != "" {
			p.add(n, unit, 2)
			return true
		}
		if day := weekdayOf(p.word(1)); day >= 0 {
			p.weekday, p.weeks, p.hasWeekday = day, n, true
			return p.drop(2)
		}
		return false
	}
	switch w {
	case "now", "today":
		return p.drop(1)
	case "tomorrow":
		p.days++
		return p.drop(1)
	case "yesterday":
		p.days--
		return p.drop(1)
	case "midnight":
		p.setTime(0, 0, 0, 0)
		return p.drop(1)
	case "noon":
		p.setTime(12, 0, 0, 0)
		return p.drop(1)
	case "z", "utc", "gmt", "ut":
		p.zone = time.UTC
		return p.drop(1)
	}
	if day := weekdayOf(w); day >= 0 {
		p.weekday, p.weeks, p.hasWeekday = day, 0, true
		return p.drop(1)
	}
	if unit := unitOf(w); unit != "" && !p.hasDate {
		p.add(1, unit, 1)
		return true
	}
	if month := monthOf(w); month > 0 {
		day, ok := p.num(1)
		if !ok {
			return false
		}
		p.setDate(p.now.Year(), month, day)
		p.drop(2)
		p.trailingYear()
		return true
	}
	if hours, ok := zones[w]; ok {
		p.zone = time.FixedZone(strings.ToUpper(w), hours*3600)
		return p.drop(1)
	}
	return false
}

var zones = map[string]int{
	"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7, "cet": 1, "cest": 2,
	"bst": 1, "wet": 0, "eet": 2, "jst": 9, "msk": 3,
}

// trailingYear reads the year after "Jan 2".
func (p *dateParser) trailingYear() {
	if n, ok := p.num(0); ok && len(p.word(0)) == 4 && p.word(1) != ":" {
		p.year = n
		p.drop(1)
	}
}

func monthOf(w string) int {
	if len(w) < 3 {
		return 0
	}
	for m := time.January; m <= time.December; m++ {
		if name := strings.ToLower(m.String()); w == name || w == name[:3] || w == "sept" && m == time.September {
			return int(m)
		}
	}
	return 0
}

func weekdayOf(w string) int {
	if len(w) < 3 {
		return -1
	}
	for d := time.Sunday; d <= time.Saturday; d++ {
		if name := strings.ToLower(d.String()); w == name || strings.HasPrefix(name, w) && len(w) <= 5 {
			return int(d)
		}
	}
	return -1
}

func unitOf(w string) string {
	w = strings.TrimSuffix(w, "s")
	switch w {
	case "year", "month", "fortnight", "week", "day", "hour", "minute", "second":
		return w
	case "min", "sec":
		return map[string]string{"min": "minute", "sec": "second"}[w]
	}
	return ""
}

// result puts the parts together. A date or a weekday without a time of day begins at midnight.
func (p *dateParser) result() time.Time {
	if p.absolute != nil {
		return p.absolute.In(p.now.Location())
	}
	now := p.now.In(p.zone)
	year, month, day := now.Date()
	if p.hasDate {
		year, month, day = p.year, time.Month(p.month), p.day
	}
	switch {
	case p.hasTime:
	case p.hasDate || p.hasWeekday:
		p.hour, p.minute, p.second, p.nanosecond = 0, 0, 0, 0
	default:
		p.hour, p.minute, p.second, p.nanosecond = now.Hour(), now.Minute(), now.Second(), now.Nanosecond()
	}
	if p.hasWeekday && !p.hasDate {
		today := int(now.Weekday())
		ahead := (p.weekday - today + 7) % 7
		if ahead > 0 && p.weeks > 0 {
			p.weeks--
		}
		day += ahead + 7*p.weeks
	}
	t := time.Date(year+p.years, month+time.Month(p.months), day+p.days, p.hour, p.minute, p.second, p.nanosecond, p.zone)
	return t.Add(p.shift).In(p.now.Location())
}
