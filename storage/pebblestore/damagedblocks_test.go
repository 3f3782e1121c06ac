package pebblestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/storage/pebblestore/walcheck"
)

// table is an in-memory table.
type table struct {
	vfs.File
	content []byte
}

func (f *table) ReadAt(p []byte, at int64) (int, error) { return copy(p, f.content[at:]), nil }

// A damaged block is reported at once as long as it is damaged, and no other read is changed.
func TestGuard(t *testing.T) {
	one := []byte("the first block\x00")
	one = binary.LittleEndian.AppendUint32(one, walcheck.Sum(one))
	file := &table{content: bytes.Repeat(one, 2)}
	var known damagedBlocks
	red, blue := known.Guard(file, "db/000004.sst"), known.Guard(&table{content: file.content}, "db/000005.sst")
	size := len(one)
	report := fmt.Errorf("pebble: file 000004: block %d/%d: crc32c checksum mismatch 1 != 2", size, size-5)
	read := func(f vfs.File, at, n int) error {
		t.Helper()
		p := make([]byte, n)
		got, err := f.ReadAt(p, int64(at))
		if err == nil && (got != n || !bytes.Equal(p, file.content[at:at+n])) {
			t.Errorf("at %d: got %q", at, p)
		}
		return err
	}
	file.content[size] ^= 1
	if err := read(red, size, size); err != nil {
		t.Errorf("before Pebble's report: got %v", err)
	}
	known.Note("db/000004.sst", errors.New("block of another report"))
	known.Note("db/000004.sst", report)
	known.Note("db/000004.sst", fmt.Errorf("again: %w", report))
	if known.Count() != 1 {
		t.Errorf("%d are known", known.Count())
	}
	for range 2 {
		if err := read(red, size, size); !errors.Is(err, report) {
			t.Errorf("the damaged block: got %v", err)
		}
	}
	for name, err := range map[string]error{"another block": read(red, 0, size), "a part": read(red, size, size-1),
		"the place in another table": read(blue, size, size)} {
		if err != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
	file.content[size] ^= 1
	if err := read(red, size, size); err != nil || known.Count() != 0 {
		t.Errorf("repaired: got %v, and %d are known", err, known.Count())
	}
	for i := range 2000 {
		known.Note("db/000004.sst", fmt.Errorf("block %d/%d: crc32c checksum mismatch", i, size-5))
	}
	if known.Count() != 1024 {
		t.Errorf("%d are known", known.Count())
	}
}
