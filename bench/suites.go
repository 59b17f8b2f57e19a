package bench

import (
	"fmt"
	"regexp"
	"slices"
)

// makers are all suites, in the order in which they are run.
var makers = []struct {
	name string
	make func(Sizes) Suite
}{
	{"reference", referenceSuite},
	{"shell", shellSuite},
	{"real", realSuite},
	{"work", workSuite},
	{"fio", fioSuite},
	{"scale", scaleSuite},
	{"store", storeSuite},
}

// SuiteNames returns the names of all suites, in the order in which they are run.
func SuiteNames() []string {
	var names []string
	for _, m := range makers {
		names = append(names, m.name)
	}
	return names
}

// Suites returns the suites of these names in their order, whatever the order of the names. "all" names all.
func Suites(names []string, sizes Sizes) ([]Suite, error) {
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	all := wanted["all"]
	delete(wanted, "all")
	var suites []Suite
	for _, m := range makers {
		if all || wanted[m.name] {
			suites = append(suites, m.make(sizes))
		}
		delete(wanted, m.name)
	}
	for name := range wanted {
		return nil, fmt.Errorf("there is no suite %q; there are %v", name, SuiteNames())
	}
	return suites, nil
}

// OnlyRows returns the suites with those rows whose names match a regular expression, and without the suites that have
// none left. It is an error when nothing is left. The empty expression matches all.
func OnlyRows(suites []Suite, expression string) ([]Suite, error) {
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, err
	}
	var left []Suite
	for _, s := range suites {
		s.Workloads = slices.DeleteFunc(slices.Clone(s.Workloads), func(w Workload) bool { return !re.MatchString(w.Name) })
		if len(s.Workloads) > 0 {
			left = append(left, s)
		}
	}
	if len(left) == 0 {
		return nil, fmt.Errorf("no row's name matches %q", expression)
	}
	return left, nil
}
