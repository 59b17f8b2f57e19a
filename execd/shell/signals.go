package shell

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	sigInt  = 2
	sigKill = 9
	sigTerm = 15
	sigStop = 19
)

// signalNames are the signals of Linux by number, without SIG.
var signalNames = []string{
	"EXIT", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
	"TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH",
	"IO", "PWR", "SYS", "", "", "RTMIN", "RTMIN+1", "RTMIN+2", "RTMIN+3", "RTMIN+4", "RTMIN+5", "RTMIN+6", "RTMIN+7",
	"RTMIN+8", "RTMIN+9", "RTMIN+10", "RTMIN+11", "RTMIN+12", "RTMIN+13", "RTMIN+14", "RTMIN+15", "RTMAX-14",
	"RTMAX-13", "RTMAX-12", "RTMAX-11", "RTMAX-10", "RTMAX-9", "RTMAX-8", "RTMAX-7", "RTMAX-6", "RTMAX-5", "RTMAX-4",
	"RTMAX-3", "RTMAX-2", "RTMAX-1",
}

// harmless are the signals whose default is not to end a process; what stops one does nothing here.
var harmless = map[int]bool{17: true, 18: true, 19: true, 20: true, 21: true, 22: true, 23: true, 28: true}

// signalNumber reads a signal by number or by name, with SIG or without, in any case.
func signalNumber(s string) (int, bool) {
	if n, err := strconv.Atoi(s); err == nil {
		return n, n >= 0 && n <= 64
	}
	name := strings.TrimPrefix(strings.ToUpper(s), "SIG")
	if name == "" {
		return 0, false
	}
	for n, known := range signalNames {
		if known == name {
			return n, true
		}
	}
	return 0, false
}

func signalName(n int) string {
	if n > 0 && n < len(signalNames) && signalNames[n] != "" {
		return signalNames[n]
	}
	if n == 64 {
		return "RTMAX"
	}
	return strconv.Itoa(n)
}

// signalTexts are what is said of a process that a signal has ended.
var signalTexts = map[int]string{
	1: "Hangup", 3: "Quit", 4: "Illegal instruction", 5: "Trace/breakpoint trap", 6: "Aborted", 7: "Bus error",
	8: "Floating point exception", 9: "Killed", 10: "User defined signal 1", 11: "Segmentation fault",
	12: "User defined signal 2", 14: "Alarm clock", 15: "Terminated",
}

// listSignals is kill -l and trap -l.
func listSignals() string {
	var b strings.Builder
	column := 0
	for n := 1; n <= 64; n++ {
		name := signalName(n)
		if _, err := strconv.Atoi(name); err == nil {
			continue
		}
		fmt.Fprintf(&b, "%2d) SIG%s", n, name)
		if column++; column%5 == 0 {
			b.WriteByte('\n')
		} else {
			b.WriteByte('\t')
		}
	}
	return b.String() + "\n"
}
