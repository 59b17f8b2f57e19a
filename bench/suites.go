package bench

import "fmt"

// makers are all suites, in the order in which they are run.
var makers = []struct {
	name string
	make func(Sizes) Suite
}{
	{"reference", referenceSuite},
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
