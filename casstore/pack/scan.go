package pack

import (
	"bufio"
	"fmt"
	"io"
)

// Scan calls fn for every frame of a pack, in order, with its checksum checked; the chunk's id is not checked against
// its bytes. Frames that are being written, and those behind them, are left out. An error of fn ends the scan and comes
// back as it is. The first thing that is not a frame ends it with a [CorruptError] that says where; so does a frame
// that is longer than the file.
func (s *Set) Scan(id uint32, fn func(Loc, Header) error) error {
	p, err := s.use(id)
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	defer s.done(p)
	s.mu.Lock()
	end := p.whole()
	s.mu.Unlock()
	if err := s.opts.hook(OpRead); err != nil {
		return fmt.Errorf("scan pack %s: %w", name(id), err)
	}
	r := bufio.NewReaderSize(io.NewSectionReader(p.file, 0, end), scanBuffer)
	var head [fileHeader]byte
	n, err := io.ReadFull(r, head[:])
	if err := readError(id, 0, err); err != nil {
		return err
	}
	if err := checkFileHeader(head[:n], s.version(), id); err != nil {
		return err
	}
	return s.scanFrames(r, id, end, fn)
}

// scanFrames calls fn for every frame that r gives, up to the offset end.
func (s *Set) scanFrames(r io.Reader, id uint32, end int64, fn func(Loc, Header) error) error {
	buf, nonce, lead := make([]byte, 0, maxFrame), new([nonceLen]byte), s.lead()
	for off := int64(fileHeader); off < end; {
		loc := Loc{Pack: id, Off: uint32(off + lead)}
		if _, err := io.ReadFull(r, nonce[:lead]); readError(id, off, err) != nil {
			return readError(id, off, err)
		}
		n, err := io.ReadFull(r, buf[:frameHeader])
		if err := readError(id, off, err); err != nil {
			return err
		}
		h, _, what := decodeHeader(buf[:n])
		if what != "" {
			return loc.corrupt("%s", what)
		}
		loc.Len = h.frameLen()
		n, err = io.ReadFull(r, buf[frameHeader:loc.Len])
		if err := readError(id, off, err); err != nil {
			return err
		}
		if h, _, what = s.decodeFrame(nonce, buf[:frameHeader+n]); what != "" {
			return loc.corrupt("%s", what)
		}
		if off += lead + int64(loc.Len); h.dead {
			continue
		}
		if err := fn(loc, h); err != nil {
			return err
		}
	}
	return nil
}

// readError returns the error of a read that is more than the end of the file, which the caller sees by the length.
func readError(id uint32, off int64, err error) error {
	if err == nil || err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil
	}
	return fmt.Errorf("scan pack %s at %d: %w", name(id), off, err)
}
