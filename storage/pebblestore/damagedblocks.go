package pebblestore

import (
	"encoding/binary"
	"fmt"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/storage/pebblestore/walcheck"
)

const (
	maxKnown     = 1024 // blocks
	trailerBytes = 5    // compression type and checksum after a block
	sumBytes     = 4
)

// damagedBlocks makes repeated reads of damaged table blocks fail at once. Otherwise each read of a block with a wrong
// checksum would take half a second of processor time, in which Pebble searches for a flipped bit. The zero value
// contains no blocks. All methods may be called concurrently.
//
// Each read still reads the disk: a block whose checksum is right again is read normally. Only reads of exactly the
// blocks in which Pebble found a wrong checksum return an error.
type damagedBlocks struct {
	count atomic.Int64
	mu    sync.Mutex
	known map[damagedBlock]error
}

// damagedBlock is the position of a block including its trailer, in bytes.
type damagedBlock struct {
	file        string
	begin, size int64
}

// Note records the block that Pebble's report of damage in a file names. It ignores reports of other damage.
func (k *damagedBlocks) Note(file string, report error) {
	const before = "block "
	b := damagedBlock{file: path.Base(file)}
	_, place, _ := strings.Cut(report.Error(), before)
	if n, _ := fmt.Sscanf(place, "%d/%d: crc32c checksum mismatch", &b.begin, &b.size); n != 2 {
		return
	}
	b.size += trailerBytes
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, found := k.known[b]; found || len(k.known) >= maxKnown {
		return
	}
	if k.known == nil {
		k.known = make(map[damagedBlock]error)
	}
	k.known[b] = report
	k.count.Store(int64(len(k.known)))
}

// Count returns the number of known damaged blocks.
func (k *damagedBlocks) Count() int { return int(k.count.Load()) }

// Guard returns a table whose reads of a known block return the report that Note recorded for it.
func (k *damagedBlocks) Guard(table vfs.File, name string) vfs.File {
	return &guarded{table, k, path.Base(name)}
}

// judge returns the report of a block if it is known and its content is still damaged.
func (k *damagedBlocks) judge(b damagedBlock, content []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	report := k.known[b]
	if report == nil {
		return nil
	}
	end := len(content) - sumBytes
	if walcheck.Sum(content[:end]) != binary.LittleEndian.Uint32(content[end:]) {
		return report
	}
	delete(k.known, b)
	k.count.Store(int64(len(k.known)))
	return nil
}

// guarded is an open table.
type guarded struct {
	vfs.File
	blocks *damagedBlocks
	name   string
}

// ReadAt implements io.ReaderAt.
func (g *guarded) ReadAt(p []byte, at int64) (int, error) {
	n, err := g.File.ReadAt(p, at)
	if err == nil && g.blocks.Count() > 0 {
		err = g.blocks.judge(damagedBlock{g.name, at, int64(len(p))}, p)
	}
	return n, err
}
