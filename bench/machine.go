package bench

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine says what a report was made on.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory int64  `json:"memory_bytes"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	OS     string `json:"os"`
}

func thisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), Go: runtime.Version(), CPU: "unknown", OS: "unknown"}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		m.CPU = field(string(b), "model name", ":", m.CPU)
	}
	if b, err := os.ReadFile("/etc/os-release"); err == nil {
		m.OS = strings.Trim(field(string(b), "PRETTY_NAME", "=", m.OS), `"`)
	}
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		kib, _ := strconv.ParseInt(strings.TrimSuffix(field(string(b), "MemTotal", ":", ""), " kB"), 10, 64) // zero: unknown
		m.Memory = kib << 10
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	return m
}

// field returns the value of a name in lines of names and values.
func field(text, name, separator, missing string) string {
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(line, separator); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return missing
}
