package shell

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// timeClause is time.
func (sh *shell) timeClause(cmd *syntax.TimeClause) {
	start := sh.cfg.Now()
	if cmd.Stmt != nil {
		sh.exec(cmd.Stmt)
	} else {
		sh.status = 0
	}
	real := sh.cfg.Now().Sub(start)
	minutes, seconds := int(real.Minutes()), real.Seconds()-60*float64(int(real.Minutes()))
	if cmd.PosixFormat {
		fmt.Fprintf(sh.stderr(), "real %.2f\nuser 0.00\nsys 0.00\n", real.Seconds())
		return
	}
	format, ok := sh.get("TIMEFORMAT")
	if !ok {
		fmt.Fprintf(sh.stderr(), "\nreal\t%dm%.3fs\nuser\t0m0.000s\nsys\t0m0.000s\n", minutes, seconds)
		return
	}
	if format != "" {
		fmt.Fprintln(sh.stderr(), timeFormat(format, real.Seconds()))
	}
}

// timeFormat expands $TIMEFORMAT.
func timeFormat(format string, real float64) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		digits, long := 3, false
		if format[i] >= '0' && format[i] <= '9' && i+1 < len(format) {
			digits = min(int(format[i]-'0'), 6)
			i++
		}
		if format[i] == 'l' && i+1 < len(format) {
			long = true
			i++
		}
		value := 0.0
		switch format[i] {
		case '%':
			b.WriteByte('%')
			continue
		case 'R':
			value = real
		case 'P':
			b.WriteString("0.00")
			continue
		}
		if long {
			fmt.Fprintf(&b, "%dm%.*fs", int(value)/60, digits, value-float64(int(value)/60*60))
		} else {
			fmt.Fprintf(&b, "%.*f", digits, value)
		}
	}
	return b.String()
}
