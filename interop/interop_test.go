package interop

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/transparency-dev/tessera/client"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/agentledger/agentledger/id"
)

// sizes are the sizes at which the whole log is read: around a tile, around a full tile of the level above, and a log
// whose last tiles are partial on three levels.
var sizes = []uint64{1, 2, 255, 256, 257, 511, 512, 65_535, 65_536, 65_537, 100_003}

// deadline bounds one read of the whole log.
const deadline = time.Minute

func genesis(origin string) [32]byte {
	return sha256.Sum256([]byte("agentledger/genesis/v1\n" + origin + "\n"))
}

// Third-party clients read a log at every size: at its latest state, and again after it has grown.
func TestStrangersReadTheLog(t *testing.T) {
	s := serve(t)
	key, origin := s.key(t), s.origin(t)
	fetcher := s.fetcher(t, nil)
	w := &walker{t.Context(), transport(nil).client(), s.prefix}
	var heads []head
	for _, size := range sizes {
		s.grow(t, s.tenant, id.Index(size))
		if err := fsckLog(origin, key, fetcher, 2, deadline); err != nil {
			t.Fatalf("size %d: fsck: %.200v", size, err)
		}
		_, raw, _, err := client.FetchCheckpoint(t.Context(), fetcher.ReadCheckpoint, key, origin)
		must(t, err)
		h, err := open(raw, key)
		if err != nil || h.size != size {
			t.Fatalf("size %d: got a checkpoint of size %d, %v", size, h.size, err)
		}
		heads = append(heads, h)
	}
	for _, h := range heads {
		if err := w.walk(h, origin); err != nil {
			t.Errorf("size %d: x/mod: %v", h.size, err)
		}
		if err := fsckLog(origin, key, pinned{fetcher, h.note}, 8, deadline); err != nil {
			t.Errorf("size %d, outgrown: fsck: %.200v", h.size, err)
		}
	}
	s.pairs(t, heads)
	s.members(t, heads)
	s.tracked(t, heads)
}

func (s *served) fetcher(t testing.TB, bend transport) *client.HTTPFetcher {
	t.Helper()
	f, err := client.NewHTTPFetcher(s.prefix, bend.client())
	must(t, err)
	return f
}

// pairs checks consistency between all pairs of sizes: proofs that Tessera and x/mod compute from the tiles, and the
// service's own. Each is checked by another library.
func (s *served) pairs(t *testing.T, heads []head) {
	fetcher := s.fetcher(t, nil)
	w := &walker{t.Context(), transport(nil).client(), s.prefix}
	for _, to := range heads {
		builder, err := prover(t.Context(), fetcher, to.size)
		must(t, err)
		for _, from := range heads {
			if from.size > to.size {
				continue
			}
			name := fmt.Sprintf("%d to %d", from.size, to.size)
			theirs, err := builder.ConsistencyProof(t.Context(), from.size, to.size)
			if err == nil {
				err = checkConsistency(from, to, theirs)
			}
			if err != nil {
				t.Errorf("%s: Tessera: %v", name, err)
			}
			tree := tlog.Tree{N: int64(to.size), Hash: to.root}
			mods, err := tlog.ProveTree(tree.N, int64(from.size), tlog.TileHashReader(tree, w))
			if err == nil {
				err = tlog.CheckTree(mods, tree.N, to.root, int64(from.size), from.root)
			}
			if err != nil {
				t.Errorf("%s: x/mod: %v", name, err)
			}
			ours := s.consistency(t, from.size, to.size)
			if ours.FromRoot != hex.EncodeToString(from.root[:]) || ours.ToRoot != hex.EncodeToString(to.root[:]) {
				t.Errorf("%s: other roots", name)
			}
			hashes := decoded(t, ours.Hashes)
			if err := checkConsistency(from, to, hashes); err != nil {
				t.Errorf("%s: our proof: %v", name, err)
			}
			if err := tlog.CheckTree(treeProof(hashes), tree.N, to.root, int64(from.size), from.root); err != nil {
				t.Errorf("%s: our proof, by x/mod: %v", name, err)
			}
			if len(hashes) != len(theirs) || len(hashes) != len(mods) {
				t.Errorf("%s: %d hashes of ours, %d of Tessera's, %d of x/mod's", name, len(hashes), len(theirs), len(mods))
			}
		}
	}
}

// members checks inclusion of some leaves, including the ends of tiles.
func (s *served) members(t *testing.T, heads []head) {
	fetcher := s.fetcher(t, nil)
	random := rand.New(rand.NewPCG(7, 7))
	for _, h := range heads {
		builder, err := prover(t.Context(), fetcher, h.size)
		must(t, err)
		for _, index := range []uint64{0, h.size - 1, h.size / 2, random.Uint64N(h.size), min(255, h.size-1), min(256, h.size-1)} {
			ours := s.inclusion(t, index, h.size)
			leaves, err := client.FetchLeafHashes(t.Context(), fetcher.ReadTile, index, 1, h.size)
			must(t, err)
			if hex.EncodeToString(leaves[0]) != ours.LeafHash {
				t.Errorf("leaf %d of %d: the tile has another", index, h.size)
			}
			theirs, err := builder.InclusionProof(t.Context(), index)
			must(t, err)
			for name, hashes := range map[string][][]byte{"ours": decoded(t, ours.Hashes), "Tessera's": theirs} {
				if err := checkInclusion(index, leaves[0], h, hashes); err != nil {
					t.Errorf("leaf %d of %d, %s: %v", index, h.size, name, err)
				}
				if err := tlog.CheckRecord(tlog.RecordProof(treeProof(hashes)), int64(h.size), h.root, int64(index), tlog.Hash(leaves[0])); err != nil {
					t.Errorf("leaf %d of %d, %s, by x/mod: %v", index, h.size, name, err)
				}
			}
		}
	}
}

// tracked follows the log from head to head like a client of Tessera.
func (s *served) tracked(t *testing.T, heads []head) {
	fetcher := s.fetcher(t, nil)
	at := 0
	read := func(context.Context) ([]byte, error) { return heads[at].note, nil }
	tracker, err := client.NewLogStateTracker(t.Context(), fetcher.ReadTile, heads[0].note, s.key(t), s.origin(t), client.UnilateralConsensus(read))
	must(t, err)
	for at = range heads {
		if _, _, _, err := tracker.Update(t.Context()); err != nil {
			t.Errorf("to size %d: %v", heads[at].size, err)
		}
		if got := tracker.Latest(); got.Size != heads[at].size || !bytes.Equal(got.Hash, heads[at].root[:]) {
			t.Errorf("at size %d, want %d", got.Size, heads[at].size)
		}
	}
}

// answer is the answer of transparency/consistency or transparency/inclusion.
type answer struct {
	FromRoot string   `json:"from_root"`
	ToRoot   string   `json:"to_root"`
	LeafHash string   `json:"leaf_hash"`
	Hashes   []string `json:"hashes"`
}

func (s *served) consistency(t testing.TB, from, to uint64) answer {
	return s.ask(t, fmt.Sprintf("transparency/consistency?from=%d&to=%d", from, to))
}

func (s *served) inclusion(t testing.TB, index, size uint64) answer {
	return s.ask(t, fmt.Sprintf("transparency/inclusion?log_index=%d&tree_size=%d", index, size))
}

func (s *served) ask(t testing.TB, path string) (a answer) {
	t.Helper()
	r, err := http.Get(s.api + path)
	must(t, err)
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", path, r.Status)
	}
	must(t, json.NewDecoder(r.Body).Decode(&a))
	return a
}

func decoded(t testing.TB, texts []string) [][]byte {
	t.Helper()
	var all [][]byte
	for _, text := range texts {
		b, err := hex.DecodeString(text)
		must(t, err)
		all = append(all, b)
	}
	return all
}

func treeProof(hashes [][]byte) tlog.TreeProof {
	var p tlog.TreeProof
	for _, h := range hashes {
		p = append(p, tlog.Hash(h))
	}
	return p
}
