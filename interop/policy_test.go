package interop

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	formatswitness "github.com/transparency-dev/formats/witness"
	"github.com/transparency-dev/tessera"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// randomPolicy returns a policy over those witnesses: some alone, others in groups, and groups in groups.
func randomPolicy(random *rand.Rand, witnesses []tlog.WitnessSigner) string {
	var b strings.Builder
	var free []string
	for i, w := range witnesses {
		name := fmt.Sprint("w", i)
		free = append(free, name)
		fmt.Fprintf(&b, "witness %s %s https://w%d.example/\n", name, w.Key(), i)
	}
	for i := range 1 + random.IntN(4) {
		random.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
		n := 1 + random.IntN(len(free))
		k := fmt.Sprint(1 + random.IntN(n))
		switch random.IntN(4) {
		case 0:
			k = "any"
		case 1:
			k = "all"
		}
		name := fmt.Sprint("g", i)
		fmt.Fprintf(&b, "group %s %s %s\n", name, k, strings.Join(free[:n], " "))
		free = append(free[n:], name)
	}
	quorum := free[random.IntN(len(free))]
	if random.IntN(10) == 0 {
		quorum = trust.None
	}
	return b.String() + "quorum " + quorum + "\n"
}

// For every set of cosigners, this project, Tessera and transparency-dev's formats agree on whether the quorum is
// reached.
func TestQuorumsAgree(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 12))
	var witnesses []tlog.WitnessSigner
	for i := range 6 {
		w, err := tlog.NewWitnessSigner(fmt.Sprintf("w%d.example", i), edkey.NewPrivate())
		must(t, err)
		if i == 5 {
			w, err = tlog.NewMLDSAWitnessSigner("w5.example", make([]byte, 32))
			must(t, err)
		}
		witnesses = append(witnesses, w)
	}
	log, err := tlog.NewSignerKey("log.example/o/a", edkey.NewPrivate())
	must(t, err)
	said := map[bool]int{}
	for range 60 {
		text := randomPolicy(random, witnesses)
		ours, err := trust.Parse([]byte(text))
		must(t, err)
		theirs, err := tessera.NewWitnessGroupFromPolicy([]byte(text))
		must(t, err)
		formats, err := formatswitness.ParsePolicy([]byte(text))
		must(t, err)
		for range 20 {
			note, err := log.Sign(tlog.Checkpoint{Origin: "log.example/o/a", Size: id.Index(1 + random.Uint64N(1<<40)), Root: id.Hash{1}})
			must(t, err)
			n, err := tlog.ParseNote(note)
			must(t, err)
			for _, w := range witnesses {
				if random.IntN(2) == 0 {
					n, err = n.Add(w.Cosign(n.Text, 1_795_204_800_000))
					must(t, err)
				}
			}
			got := ours.Reached(ours.Cosignatures(n))
			said[got]++
			if a, b := theirs.Satisfied(n.Bytes()), formats.Satisfied(n.Bytes()); a != got || b != got {
				t.Fatalf("ours %v, Tessera %v, formats %v of\n%s%s", got, a, b, text, n.Bytes())
			}
		}
	}
	if said[true] < 100 || said[false] < 100 {
		t.Errorf("got %v: one answer alone shows nothing", said)
	}
}
