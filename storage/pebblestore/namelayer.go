package pebblestore

import "sync/atomic"

const (
	// A name sets one bit in each word of one block, which is a cache line. With 32 names per block, one new name in a
	// thousand is mistaken for an existing one.
	wordsInBlock  = 8
	bitsOfWord    = 6 // bits of the hash that select a bit of a word
	namesInBlock  = 32
	blocksOfFirst = 512 // 16,384 names
	growth        = 4
)

type filterBlock [wordsInBlock]uint64

// layer is a Bloom filter of fixed size. Only one goroutine at a time may add hashes; any number may look them up.
type layer struct {
	blocks []filterBlock
	room   int // names that can still be added
}

// newLayer returns layer n, counted from 0. Each layer has four times the capacity of the layer before.
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

// capacity returns the number of names that n layers can hold.
func capacity(layers int) (names int) {
	for i := range layers {
		names += blocksOf(i) * namesInBlock
	}
	return names
}

// block returns the block of a hash. The upper half of the hash selects the block, so that block and bits share bits of
// the hash only in the largest layers, and there only few.
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
