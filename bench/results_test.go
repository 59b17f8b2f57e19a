package bench

import (
	"os"
	"strings"
	"testing"
)

// TestReadmeTable: the table of README.md is of the samples that are kept beside it.
func TestReadmeTable(t *testing.T) {
	f, err := os.Open("results/2026-12-01-reference-shell.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := ReadReport(f)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := r.WriteTable(&table, TableOptions{}); err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```\n"+strings.TrimSpace(table.String())+"\n```\n") {
		t.Errorf("README.md does not show this table:\n%s", &table)
	}
}
