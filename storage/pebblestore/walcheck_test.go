package pebblestore_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/pebblestore/walcheck"
)

// longLog returns a file system on which a process with two ledgers ended, with several MiB of acknowledged data in one
// log, and the number of appends. Results were awaited in groups of the given size. The process was killed or stopped.
func longLog(t *testing.T, together int, stopped bool) (image *vfs.MemFS, log string, appends int) {
	t.Helper()
	fs := enginetest.NewCrashDisk()
	e := open(t, pebblestore.Options{Dir: "data", FS: fs})
	red, blue := newWriter(1), newWriter(2)
	var out []storage.Pending
	for appends < 130+960 {
		batches := []storage.Batch{red.next(1), blue.next(1)}
		weight := 1500
		if appends < 130 { // Pebble's first logs are short
			weight = 15_000
		}
		for i := range batches {
			batches[i].Changes = []storage.Change{{Kind: "weight", Key: "w", Value: bytes.Repeat([]byte{1, 2, 3}, weight/3), If: storage.AnyVersion}}
		}
		out = append(out, e.Append(batches))
		appends++
		if len(out) == together {
			for _, p := range out {
				wantAll(t, p.Wait(), nil)
			}
			out = nil
		}
	}
	for _, p := range out {
		wantAll(t, p.Wait(), nil)
	}
	image = fs.CrashClone(vfs.CrashCloneCfg{})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if stopped {
		image = fs.CrashClone(vfs.CrashCloneCfg{})
	}
	log = fileOf(t, image, "", ".log")
	if n := len(readFile(t, image, log)); n < 3<<20 {
		t.Fatalf("the newest log has %d bytes", n)
	}
	return image, log, appends
}

// A wrong byte anywhere in the latest log is not mistaken for a torn end: either the store is rejected and unchanged,
// or everything that was acknowledged is there.
func TestFlippedLog(t *testing.T) {
	const places = 20
	for _, together := range []int{1, 8} {
		image, log, appends := longLog(t, together, false)
		whole := readFile(t, image, log)
		refused := 0
		for i := range places {
			at := len(whole)*i/places + len(whole)/places/2
			bent := slices.Clone(whole)
			bent[at] ^= 0xff
			one := image.CrashClone(vfs.CrashCloneCfg{})
			writeFile(t, one, log, bent)
			before := files(t, one, "data")
			modes := []bool{true, false}
			for _, readOnly := range modes[min(i%5, 1):] { // every fifth position also read-only
				e, err := pebblestore.Open(pebblestore.Options{Dir: "data", FS: one, CacheBytes: 1 << 20, ReadOnly: readOnly})
				if errors.Is(err, storage.ErrCorrupt) {
					refused++
					if !strings.Contains(err.Error(), path.Base(log)+" is damaged at byte") || !strings.Contains(err.Error(), "acknowledged events follow it") {
						t.Errorf("byte %d: %v", at, err)
					}
					if after := files(t, one, "data"); !maps.Equal(before, after) {
						t.Errorf("byte %d: the files are others than before", at)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if red, blue := head(t, e, 1).Size, head(t, e, 2).Size; int(red) != appends || int(blue) != appends {
					t.Errorf("%d together: byte %d of %d, read-only %v: got %d and %d appends, want %d", together, at, len(whole), readOnly, red, blue, appends)
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		t.Logf("%d together: a log of %d bytes, refused %d times at %d places", together, len(whole), refused, places)
	}
}

// lastLogChunk returns the start and end of the last whole chunk of a log.
func lastLogChunk(b []byte) (begin, end int) {
	const header = 19
	for at := 0; len(b)-at >= header; {
		if left := walcheck.Block - at%walcheck.Block; left < header {
			at += left
			continue
		}
		next := at + header + int(binary.LittleEndian.Uint16(b[at+4:]))
		if next > len(b) || walcheck.Sum(b[at+6:next]) != binary.LittleEndian.Uint32(b[at:]) {
			break
		}
		begin, end = at, next
		at = next
	}
	return begin, end
}

// A wrong bit in the last chunks of a log is also damage: a crash does not write a chunk with one wrong bit.
func TestFlippedBitsAtTheEnd(t *testing.T) {
	image, log, _ := longLog(t, 1, false)
	whole := readFile(t, image, log)
	number, err := strconv.ParseUint(strings.TrimSuffix(path.Base(log), ".log"), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := lastLogChunk(whole)
	random := rand.New(rand.NewPCG(1, 1))
	for i := 0; i < end-begin; i += 1 + min(i/32, 1)*6 { // every byte of the header
		bent := slices.Clone(whole[begin:end])
		bit := random.IntN(8)
		bent[i] ^= 1 << bit
		// Of a length that is greater than before there is nothing to hold it against.
		if longer := (i == 4 || i == 5) && bent[i] > whole[begin+i]; !walcheck.FlippedBit(bent, uint32(number)) && !longer {
			t.Errorf("byte %d of %d, bit %d: not found", i, len(bent), bit)
		}
	}
	for seed := range uint64(300) { // what is torn is not taken for a flipped bit
		random := rand.New(rand.NewPCG(seed, 2))
		torn := slices.Clone(whole[begin:end])
		from := random.IntN(len(torn)-64) + 32
		clear(torn[from:min(len(torn), from+512)])
		if bytes.Equal(torn, whole[begin:end]) {
			continue
		}
		if walcheck.FlippedBit(torn, uint32(number)) {
			t.Errorf("seed %d: zeros from byte %d on are taken for a flipped bit", seed, from)
		}
	}
}

// A store that was stopped has a log whose last events are proved to have been synced: any change of them is damage.
func TestDamageInTheLogOfAStoppedStore(t *testing.T) {
	image, log, _ := longLog(t, 8, true)
	whole := readFile(t, image, log)
	const seals = 400 // bytes at the end, and more
	for at := len(whole) - 20_000; at < len(whole)-seals; at += 1917 {
		bent := slices.Clone(whole)
		clear(bent[at : at+100])
		writeFile(t, image, log, bent)
		if _, err := pebblestore.Inspect(image, "data"); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("zeros at byte %d of %d: got %v", at, len(whole), err)
		}
	}
	writeFile(t, image, log, whole)
	if holes, err := pebblestore.Inspect(image, "data"); holes != 0 || err != nil {
		t.Errorf("whole: got %d, %v", holes, err)
	}
}

// A power failure leaves holes in the unsynced part of the latest log, and whole chunks after them. None of these logs
// is rejected.
func TestHolesInTheLog(t *testing.T) {
	mem := enginetest.NewCrashDisk()
	var mu sync.Mutex
	var images []*vfs.MemFS
	syncs := uint64(0)
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		sync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData
		if !sync || !strings.HasSuffix(op.Path, ".log") {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		syncs++
		for seed := range uint64(4) {
			random := rand.New(rand.NewPCG(syncs, seed))
			images = append(images, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 30 + 15*int(seed), RNG: random}))
		}
		return nil
	}))
	e := open(t, pebblestore.Options{Dir: "data", FS: fs})
	writers := []*writer{newWriter(1), newWriter(2)}
	var out []storage.Pending
	for i := range 120 {
		out = append(out, e.Append([]storage.Batch{heavy(writers[i%2].next(2))}))
		if i%7 == 0 {
			wantAll(t, out[len(out)-1].Wait(), nil)
		}
		if i == 60 { // the next log takes the file of an older one
			for range 3 {
				if err := e.Compact(t.Context()); err != nil {
					t.Fatal(err)
				}
				wantAll(t, e.Append([]storage.Batch{heavy(writers[0].next(1))}).Wait(), nil)
			}
		}
	}
	for _, p := range out {
		p.Wait()
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	holes := 0
	for i, image := range images {
		behind, err := pebblestore.Inspect(image, "data")
		if err != nil {
			t.Errorf("image %d of %d: %v", i, len(images), err)
		}
		if behind > 0 {
			holes++
		}
	}
	t.Log(fmt.Sprint(len(images), " images, ", holes, " with whole chunks behind a hole"))
	if holes == 0 {
		t.Error("no image has a hole")
	}
}
