package pebblestore

import "sync/atomic"

const (
	// A name has one bit in each word of one block, which is a line of the processor's cache. With 32 names in a
	// block one new name in a thousand is taken for one that may be there.
	wordsInBlock  = 8
	bitsOfWord    = 6 // of the hash, which choose a bit of a word
	namesInBlock  = 32
	blocksOfFirst = 512 // 16,384 names
	growth        = 4
)

type filterBlock [wordsInBlock]uint64

// layer is a Bloom filter of fixed size. One goroutine at a time adds; any number may ask meanwhile.
type layer struct {
	blocks []filterBlock
	room   int // for names
}

// newLayer returns the layer of a number, from 0. Each has room for four times as many names as the one before.
func newLayer(number int) *layer {
	n := blocksOf(number)
	return &layer{blocks: make([]filterBlock, n), room: n * namesInBlock}
}

func blocksOf(number int) int {
	n := blocksOfFirst
	for range number {
		n *= growth
	}
	return n
}

// capacity returns for how many names so many layers have room.
func capacity(layers int) (names int) {
	for i := range layers {
		names += blocksOf(i) * namesInBlock
	}
	return names
}

// filterBlock returns the block of a hash. Its upper half chooses the block, so that blocks and bits depend on each other
// only in the largest layers, and there by few bits.
func (l *layer) block(h uint64) *filterBlock {
	return &l.blocks[(h>>32)*uint64(len(l.blocks))>>32]
}

func (l *layer) addHash(h uint64) {
	b := l.block(h)
	for i := range b {
		atomic.OrUint64(&b[i], bit(h, i))
	}
	l.room--
}

func (l *layer) mayHold(h uint64) bool {
	b := l.block(h)
	for i := range b {
		if atomic.LoadUint64(&b[i])&bit(h, i) == 0 {
			return false
		}
	}
	return true
}

// bit returns the bit of a hash in word i of its block.
func bit(h uint64, i int) uint64 { return 1 << (h >> (i * bitsOfWord) & (1<<bitsOfWord - 1)) }
