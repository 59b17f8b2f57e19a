package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore/control"
)

func (p *program) statsCommand() *cli.Command {
	return &cli.Command{
		Name:   "stats",
		Usage:  "say what is in the store, and what it takes",
		Flags:  []cli.Flag{storeFlag(), &cli.BoolFlag{Name: "json", Usage: "print one JSON object"}},
		Action: p.stats,
	}
}

// statsJSON is what there is of a store, and who is served it, as scripts see it.
type statsJSON struct {
	storeJSON
	Served []servedJSON `json:"served,omitempty"`
}

// storeJSON is casstore.Stats as scripts see it.
type storeJSON struct {
	Rev          uint64 `json:"revision"`
	Workspaces   uint64 `json:"workspaces"`
	Inodes       uint64 `json:"inodes"`
	LogicalBytes uint64 `json:"logical_bytes"`
	DataBytes    uint64 `json:"data_bytes"`
	UniqueBytes  uint64 `json:"unique_bytes"`
	StoredBytes  uint64 `json:"stored_bytes"`
	PastBytes    uint64 `json:"past_bytes"`
	Reclaimable  uint64 `json:"reclaimable_bytes"`
	Damaged      uint64 `json:"damaged"`
	SampledOf    uint64 `json:"sampled_of"` // one chunk of so many was looked at; 1 when the four before are exact
	Chunks       uint64 `json:"chunks"`
	ChunkBytes   uint64 `json:"chunk_bytes"`
	Packs        uint64 `json:"packs"`
	PackBytes    uint64 `json:"pack_bytes"`
	BadgerBytes  uint64 `json:"badger_bytes"`
	DirtyBytes   uint64 `json:"dirty_bytes"`
	BufferBytes  uint64 `json:"buffer_bytes"`
	DiskFree     uint64 `json:"disk_free"`
	Reserve      uint64 `json:"reserve"`
}

// about is put before what is known of a sample only.
func (j storeJSON) about() string {
	if j.SampledOf > 1 {
		return "about "
	}
	return ""
}

// dedup is how many times a chunk is referred to.
func (j storeJSON) dedup() string {
	if j.UniqueBytes == 0 {
		return ""
	}
	return fmt.Sprintf(" (each %.2f times)", float64(j.DataBytes)/float64(j.UniqueBytes))
}

func (p *program) stats(c *cli.Context) error {
	if _, err := arguments(c, 0, 0); err != nil {
		return err
	}
	dir, err := storeDir(c)
	if err != nil {
		return err
	}
	return p.withStore(c, false, func(s *opened) error {
		st, err := s.Stats(c.Context)
		if err != nil {
			return err
		}
		var list []control.Served
		if s.owner != nil {
			if list, err = s.owner.Served(c.Context); err != nil {
				return err
			}
		}
		if !c.Bool("json") {
			return p.printStats(dir, statsJSON{storeJSON: storeJSON(st)}, list)
		}
		j := statsJSON{storeJSON: storeJSON(st)}
		for _, now := range list {
			j.Served = append(j.Served, servedJSONOf(now))
		}
		return p.printJSON(j)
	})
}

func (p *program) printStats(dir string, j statsJSON, served []control.Served) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	for _, row := range []struct{ name, value string }{
		{"store", dir},
		{"newest revision", fmt.Sprint(j.Rev)},
		{"workspaces", fmt.Sprint(j.Workspaces)},
		{"inodes", fmt.Sprint(j.Inodes)},
		{"files, holes included", humanize.IBytes(j.LogicalBytes)},
		{"in chunks", fmt.Sprintf("%s, of which %s%s are different%s; these take %s", humanize.IBytes(j.DataBytes), j.about(),
			humanize.IBytes(j.UniqueBytes), j.dedup(), humanize.IBytes(j.StoredBytes))},
		{"kept for the past", j.about() + humanize.IBytes(j.PastBytes)},
		{"reclaimable", j.about() + humanize.IBytes(j.Reclaimable)},
		{"chunks", fmt.Sprintf("%d, %s", j.Chunks, humanize.IBytes(j.ChunkBytes))},
		{"packs", fmt.Sprintf("%d, %s", j.Packs, humanize.IBytes(j.PackBytes))},
		{"records and index", humanize.IBytes(j.BadgerBytes)},
		{"not yet on disk", fmt.Sprintf("%s of at most %s", humanize.IBytes(j.DirtyBytes), humanize.IBytes(j.BufferBytes))},
		{"free on the disk", fmt.Sprintf("%s, of which %s are kept so that deleting works", humanize.IBytes(j.DiskFree),
			humanize.IBytes(j.Reserve))},
	} {
		fmt.Fprintf(w, "%s\t%s\n", row.name, row.value)
	}
	if j.Damaged > 0 {
		fmt.Fprintf(w, "damaged\t%d files, of the past too; carrel check says which\n", j.Damaged)
	}
	for _, s := range served {
		fmt.Fprintf(w, "served to\t%d sessions; %d requests by %d in all\n", len(s.Peers), s.Traffic.RoundTrips(), s.Traffic.Sessions)
		fmt.Fprintf(w, "UDP\t%s\n", udpState(s))
	}
	return w.Flush()
}
