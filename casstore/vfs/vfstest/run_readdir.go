package vfstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

var readDirBehaviours = []behaviour{
	{"EmptyDirectory", readDirOfAnEmptyDirectory},
	{"TellsTypeAndInode", readDirTellsTypeAndInode},
	{"ListsEachEntryOnce", readDirListsEachEntryOnce},
	{"ResumesAfterAnyOffset", readDirResumesAfterAnyOffset},
	{"LowOffsetsAreTheStart", lowOffsetsAreTheStart},
	{"PastTheLastIsNothing", pastTheLastIsNothing},
	{"StopsWhenToldTo", readDirStopsWhenToldTo},
	{"OffsetsStay", offsetsStay},
	{"ResumesAfterARemovedEntry", readDirResumesAfterARemovedEntry},
	{"InPiecesWhileEntriesComeAndGo", readDirInPieces},
	{"ChangesFromWithinYield", changesFromWithinYield},
	{"RemovesAllWhileReading", removesAllWhileReading},
	{"NestedReaders", nestedReaders},
	{"WhileOthersChange", readDirWhileOthersChange},
	{"RemovedWhileReading", directoryRemovedWhileReading},
	{"CancelledWhileReading", readDirCancelled},
	{"RenamedEntriesAreListedOnce", renamedEntriesAreListedOnce},
}

func readDirOfAnEmptyDirectory(s *suite) {
	s.commit()
	if entries := s.list(s.dir); len(entries) != 0 {
		s.Errorf("entries %v", entries)
	}
	entries := s.list(vfs.RootIno)
	if len(entries) != 2 {
		s.Errorf("entries of the root: %v, want those of the suite", entries)
	}
}

func readDirTellsTypeAndInode(s *suite) {
	want := make(map[string]vfs.Attr)
	for _, t := range allTypes {
		want[t.name] = s.make(s.dir, t.name, t.typ)
	}
	for range 2 {
		entries := s.list(s.dir)
		if len(entries) != len(want) {
			s.Errorf("%d entries, want %d", len(entries), len(want))
		}
		for _, e := range entries {
			if w := want[e.Name]; e.Ino != w.Ino || e.Type != w.Type {
				s.Errorf("entry %+v, want inode %d of type %d", e, w.Ino, w.Type)
			}
		}
		s.commit()
	}
}

// largeDir is how many entries a directory has that nothing lists in one piece.
const largeDir = 1500

// fill makes n files and returns their names.
func (s *suite) fill(dir vfs.Ino, prefix string, n int) []string {
	s.Helper()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint(prefix, i)
		s.create(dir, names[i])
	}
	return names
}

func namesOf(entries []vfs.Dirent) []string {
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
	}
	return names
}

// once reports unless each of want is among names exactly once.
func (s *suite) once(names, want []string) {
	s.Helper()
	count := make(map[string]int, len(names))
	for _, name := range names {
		count[name]++
	}
	for _, name := range want {
		if count[name] != 1 {
			s.Errorf("%q was listed %d times", name, count[name])
		}
	}
}

func readDirListsEachEntryOnce(s *suite) {
	for _, n := range []int{1, 2, 63, 64, 65, 200, largeDir} {
		dir := s.mkdir(s.dir, fmt.Sprint(n)).Ino
		want := s.fill(dir, "f", n)
		for range 2 {
			entries := s.list(dir)
			s.once(namesOf(entries), want)
			if len(entries) != n {
				s.Errorf("%d entries, want %d", len(entries), n)
			}
			if !slices.IsSortedFunc(entries, func(a, b vfs.Dirent) int { return int(a.Offset) - int(b.Offset) }) {
				s.Error("not in the order of their offsets")
			}
			s.commit()
		}
	}
}

func readDirResumesAfterAnyOffset(s *suite) {
	for _, n := range []int{1, 200} {
		dir := s.mkdir(s.dir, fmt.Sprint(n)).Ino
		s.fill(dir, "f", n)
		for range 2 {
			all := s.list(dir)
			for i, e := range all {
				if rest := s.listAfter(dir, e.Offset); !slices.Equal(rest, all[i+1:]) {
					s.Fatalf("after entry %d of %d: %d entries", i, n, len(rest))
				}
			}
			s.commit()
		}
	}
}

func lowOffsetsAreTheStart(s *suite) {
	s.fill(s.dir, "f", 10)
	all := s.list(s.dir)
	for off := range vfs.FirstOffset {
		if entries := s.listAfter(s.dir, off); !slices.Equal(entries, all) {
			s.Errorf("after offset %d: %d entries, want all %d", off, len(entries), len(all))
		}
	}
}

func pastTheLastIsNothing(s *suite) {
	s.fill(s.dir, "f", 10)
	all := s.list(s.dir)
	for _, off := range []vfs.Offset{all[9].Offset, 1<<63 - 1} {
		if entries := s.listAfter(s.dir, off); len(entries) > 0 {
			s.Errorf("after offset %d: %v", off, entries)
		}
	}
}

func readDirStopsWhenToldTo(s *suite) {
	s.fill(s.dir, "f", 200)
	for _, n := range []int{1, 64, 199, 200} {
		calls := 0
		s.ok(s.tree.ReadDir(s.ctx(), s.dir, 0, func(vfs.Dirent) bool {
			calls++
			return calls < n
		}))
		if calls != n {
			s.Errorf("%d calls after false at the one of number %d", calls, n)
		}
	}
}

func offsetsStay(s *suite) {
	s.fill(s.dir, "f", 200)
	offsets := make(map[string]vfs.Offset)
	for _, e := range s.list(s.dir) {
		offsets[e.Name] = e.Offset
	}
	check := func() {
		s.Helper()
		for _, e := range s.list(s.dir) {
			if was, ok := offsets[e.Name]; ok && was != e.Offset {
				s.Errorf("offset of %q went from %d to %d", e.Name, was, e.Offset)
			}
		}
	}
	s.commit()
	check()
	for i := 0; i < 200; i += 3 {
		s.unlink(s.dir, fmt.Sprint("f", i))
		delete(offsets, fmt.Sprint("f", i))
	}
	check()
	s.fill(s.dir, "new", 100)
	check()
	s.commit()
	check()
}

func readDirResumesAfterARemovedEntry(s *suite) {
	s.fill(s.dir, "f", 100)
	all := s.list(s.dir)
	for _, i := range []int{0, 1, 50, 98, 99} {
		s.unlink(s.dir, all[i].Name)
		if i%2 == 0 {
			s.commit()
		}
		want := slices.Clone(all[i+1:])
		want = slices.DeleteFunc(want, func(e vfs.Dirent) bool {
			_, err := s.tree.Lookup(s.ctx(), s.dir, e.Name)
			return errors.Is(err, vfs.ErrNotExist)
		})
		if rest := s.listAfter(s.dir, all[i].Offset); !slices.Equal(rest, want) {
			s.Errorf("after the removed entry %d: %d entries, want %d", i, len(rest), len(want))
		}
	}
}

// readDirInPieces reads as the kernel does, a few entries a call, while others come and go between the calls.
func readDirInPieces(s *suite) {
	for _, n := range []int{200, largeDir} {
		dir := s.mkdir(s.dir, fmt.Sprint(n)).Ino
		want := s.fill(dir, "stays", n)
		s.fill(dir, "goes", n/10)
		var got []string
		last, gone, made := vfs.Offset(0), 0, 0
		for more := true; more; {
			more = false
			s.ok(s.tree.ReadDir(s.ctx(), dir, last, func(e vfs.Dirent) bool {
				got, last, more = append(got, e.Name), e.Offset, true
				return len(got)%17 != 0
			}))
			if gone < n/10 {
				s.unlink(dir, fmt.Sprint("goes", gone))
				gone++
			}
			if made < n/10 {
				s.create(dir, fmt.Sprint("comes", made))
				made++
			}
		}
		s.once(got, want)
	}
}

func changesFromWithinYield(s *suite) {
	want := s.fill(s.dir, "stays", 500)
	s.fill(s.dir, "goes", 100)
	var got []string
	s.ok(s.tree.ReadDir(s.ctx(), s.dir, 0, func(e vfs.Dirent) bool {
		if i := len(got); i < 100 {
			if strings.HasPrefix(e.Name, "stays") { // others may be yielded after they have gone
				s.leads(s.dir, e.Name, e.Ino)
			}
			s.unlink(s.dir, fmt.Sprint("goes", i))
			s.write(s.create(s.dir, fmt.Sprint("comes", i)).Ino, 0, []byte("bytes"))
		}
		got = append(got, e.Name)
		return true
	}))
	s.once(got, want)
}

// removesAllWhileReading does what rm -r does.
func removesAllWhileReading(s *suite) {
	for _, n := range []int{200, largeDir} {
		dir := s.mkdir(s.dir, fmt.Sprint(n)).Ino
		want := s.fill(dir, "f", n)
		s.commit()
		var got []string
		s.ok(s.tree.ReadDir(s.ctx(), dir, 0, func(e vfs.Dirent) bool {
			s.unlink(dir, e.Name)
			got = append(got, e.Name)
			return true
		}))
		s.once(got, want)
		s.rmdir(s.dir, fmt.Sprint(n))
	}
}

func nestedReaders(s *suite) {
	want := s.fill(s.dir, "f", 100)
	var outer []string
	s.ok(s.tree.ReadDir(s.ctx(), s.dir, 0, func(e vfs.Dirent) bool {
		outer = append(outer, e.Name)
		s.once(namesOf(s.list(s.dir)), want)
		return true
	}))
	s.once(outer, want)
}

func readDirWhileOthersChange(s *suite) {
	want := s.fill(s.dir, "stays", 1000)
	stop := make(chan struct{})
	var others sync.WaitGroup
	for g := range 3 {
		others.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					s.comeAndGo(s.dir, fmt.Sprintf("goes-%d-%d", g, i%20))
				}
			}
		})
	}
	for range 5 {
		s.once(namesOf(s.list(s.dir)), want)
	}
	close(stop)
	others.Wait()
}

// comeAndGo makes and removes a name that nobody else uses.
func (s *suite) comeAndGo(dir vfs.Ino, name string) {
	if _, err := s.tree.Create(s.ctx(), dir, name, fileNode); err != nil {
		s.Error(err)
	}
	if err := s.tree.Rename(s.ctx(), dir, name, dir, name+"-renamed", 0); err != nil {
		s.Error(err)
	}
	if err := s.tree.Unlink(s.ctx(), dir, name+"-renamed"); err != nil {
		s.Error(err)
	}
}

func directoryRemovedWhileReading(s *suite) {
	dir := s.mkdir(s.dir, "d").Ino
	s.fill(dir, "f", 300)
	s.tree.Hold(dir)
	first := true
	err := s.tree.ReadDir(s.ctx(), dir, 0, func(vfs.Dirent) bool {
		if first {
			first = false
			for i := range 300 {
				s.unlink(dir, fmt.Sprint("f", i))
			}
			s.rmdir(s.dir, "d")
		}
		return true
	})
	if err != nil {
		s.fails(err, vfs.ErrNotExist)
	}
	s.tree.Release(dir, 1)
	s.gone(dir)
}

func readDirCancelled(s *suite) {
	s.fill(s.dir, "f", largeDir)
	ctx, cancel := context.WithCancel(s.ctx())
	defer cancel()
	calls := 0
	err := s.tree.ReadDir(ctx, s.dir, 0, func(vfs.Dirent) bool {
		if calls++; calls == 10 {
			cancel()
		}
		return true
	})
	s.fails(err, vfs.ErrInterrupted)
	if calls == largeDir {
		s.Error("all entries were yielded after the context was cancelled")
	}
}

func renamedEntriesAreListedOnce(s *suite) {
	other := s.mkdir(vfs.RootIno, "other").Ino
	s.fill(s.dir, "f", 100)
	for i := 0; i < 100; i += 4 {
		s.rename(s.dir, fmt.Sprint("f", i), s.dir, fmt.Sprint("f", i+1))
		s.exchange(s.dir, fmt.Sprint("f", i+2), s.dir, fmt.Sprint("f", i+3))
		s.rename(s.dir, fmt.Sprint("f", i+2), other, fmt.Sprint("f", i+2))
	}
	if here, there := s.list(s.dir), s.list(other); len(here) != 50 || len(there) != 25 {
		s.Errorf("%d and %d entries, want 50 and 25", len(here), len(there))
	}
}
