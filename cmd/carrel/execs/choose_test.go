package execs

import (
	"slices"
	"testing"

	"github.com/carrelfs/carrel/execd"
)

func TestChoose(t *testing.T) {
	x := newScripts(nil)
	for _, tt := range []struct {
		spec    execd.Spec
		backend string
		args    []string
	}{
		{execd.Spec{Args: []string{"ls", "-l"}}, Shell, []string{"ls", "-l"}},
		{execd.Spec{Source: "ls | wc -l", Args: []string{"x"}}, Shell, []string{"x"}},
		{execd.Spec{Args: []string{"ls", "--frobnicate"}}, Container, []string{"ls", "--frobnicate"}},
		{execd.Spec{Args: []string{"git", "log", "--graph"}}, Container, []string{"git", "log", "--graph"}},
		{execd.Spec{Args: []string{"make"}}, Container, []string{"make"}},
		{execd.Spec{Source: "make all", Args: []string{"x"}}, Container, []string{"bash", "-c", "make all", "bash", "x"}},
		{execd.Spec{Args: []string{"ls"}, TTY: &execd.Size{}}, Container, []string{"ls"}},
		{execd.Spec{Args: []string{"ls"}, Net: "host"}, Container, []string{"ls"}},
		{execd.Spec{Args: []string{"ls"}, Runtime: "crun"}, Container, []string{"ls"}},
		{execd.Spec{Args: []string{"ls"}, Limits: execd.Limits{CPU: 500}}, Container, []string{"ls"}},
		{execd.Spec{Args: []string{"ls"}, Env: []string{"PATH=/x"}}, Container, []string{"ls"}},
	} {
		s := tt.spec
		why := x.choose(&s)
		if s.Backend != tt.backend || !slices.Equal(s.Args, tt.args) || why == "" || s.Backend == Container && s.Source != "" {
			t.Errorf("%+v: %+v, %q", tt.spec, s, why)
		}
	}
}
