package interop

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	formatsnote "github.com/transparency-dev/formats/note"
	formatswitness "github.com/transparency-dev/formats/witness"
	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/storage/posix"
	"golang.org/x/mod/sumdb/note"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/operate/witness"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// noPolicy has organizations without witness policies.
type noPolicy struct{}

func (noPolicy) Witnessing(context.Context, id.Tenant) (org.Witnessing, error) {
	return org.Witnessing{}, nil
}

// ask queries the service's witnesses until the test ends.
func ask(t testing.TB, policy *trust.Policy, store witness.Store, ledgers *log.Ledgers) *witness.Witnesses {
	t.Helper()
	w := witness.New(witness.Options{
		Store: store, Ledgers: ledgers, Organizations: noPolicy{}, Service: policy, Interval: 10 * time.Millisecond,
		Client: egress.New(egress.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, MaxAnswer: witness.MaxAnswer}),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return w
}

// twoOfThree is a policy with three witnesses, the second with an ML-DSA-44 key, of which two are a quorum. This
// project and the others read the same text.
type twoOfThree struct {
	witnesses []*witnesstest.Witness
	ours      *trust.Policy
	tessera   tessera.WitnessGroup
	formats   formatswitness.Group
}

func newTwoOfThree(t *testing.T) (w twoOfThree) {
	t.Helper()
	text := ""
	for _, name := range []string{"w1", "w2", "w3"} {
		x := witnesstest.New(t, name+".example")
		if name == "w2" {
			x = witnesstest.NewMLDSA(t, name+".example")
		}
		w.witnesses, text = append(w.witnesses, x), text+x.PolicyLine(name)
	}
	text += "group enough 2 w1 w2 w3\nquorum enough\n"
	var err error
	w.ours, err = trust.Parse([]byte(text))
	must(t, err)
	w.tessera, err = tessera.NewWitnessGroupFromPolicy([]byte(text))
	must(t, err)
	w.formats, err = formatswitness.ParsePolicy([]byte(text))
	must(t, err)
	return w
}

// know adds a log to the first n witnesses, which have seen nothing of it.
func (w twoOfThree) know(t *testing.T, key string, n int) {
	t.Helper()
	k, err := tlog.ParseVerifierKey(key)
	must(t, err)
	for _, x := range w.witnesses[:n] {
		x.AddLog(k)
	}
}

// A checkpoint that is shown as cosigned satisfies the quorum according to Tessera and transparency-dev's formats
// after each growth; one with too few cosignatures does not.
func TestCosignedCheckpointsSatisfyOthers(t *testing.T) {
	w := newTwoOfThree(t)
	s := serveWitnessed(t, w.ours)
	w.know(t, s.state(t, s.tenant).VerifierKey().String(), 2)
	for _, size := range []id.Index{1, 2, 255, 256, 257, 1000} {
		s.grow(t, s.tenant, size)
		text := s.cosigned(t, size)
		if !w.tessera.Satisfied(text) || !w.formats.Satisfied(text) {
			t.Errorf("size %d: Tessera %v, formats %v: %s", size, w.tessera.Satisfied(text), w.formats.Satisfied(text), text)
		}
		for _, x := range w.witnesses[:2] {
			v, err := formatsnote.NewVerifierForCosignatureV1(x.Signer.Key().String())
			must(t, err)
			n, err := note.Open(text, note.VerifierList(s.key(t), v))
			must(t, err)
			if len(n.Sigs) != 2 {
				t.Errorf("size %d: %d signatures of log and witness", size, len(n.Sigs))
			}
		}
		one := text[:strings.LastIndex(strings.TrimSuffix(string(text), "\n"), "\n")+1]
		if w.tessera.Satisfied(one) || w.formats.Satisfied(one) {
			t.Errorf("size %d: one witness of two is enough: %s", size, one)
		}
	}
}

// cosigned waits for the cosigned checkpoint of that size.
func (s *served) cosigned(t *testing.T, size id.Index) []byte {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		text, err := (&walker{ctx: t.Context(), client: http.DefaultClient, prefix: s.prefix}).fetch("checkpoint?cosigned=1")
		if err == nil && strings.Contains(string(text), fmt.Sprintf("\n%d\n", size)) {
			return text
		}
		if time.Now().After(end) {
			t.Fatalf("size %d is not cosigned: %s, %v", size, text, err)
		}
	}
}

// Tessera accepts the tests' witness: its appender publishes only what two of three witnesses cosigned, even if a
// witness has forgotten what it saw, and the result opens under our policy.
func TestTesseraAsksOurTestWitness(t *testing.T) {
	w := newTwoOfThree(t)
	secret, public, err := note.GenerateKey(rand.Reader, "tessera.example/log")
	must(t, err)
	w.know(t, public, 3)
	signer, err := note.NewSigner(secret)
	must(t, err)
	driver, err := posix.New(t.Context(), posix.Config{Path: t.TempDir()})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	appender, shutdown, reader, err := tessera.NewAppender(ctx, driver, tessera.NewAppendOptions().WithCheckpointSigner(signer).
		WithBatching(1, time.Millisecond).WithCheckpointInterval(100*time.Millisecond).WithWitnesses(w.tessera, &tessera.WitnessOptions{Timeout: 5 * time.Second}))
	must(t, err)
	await := tessera.NewPublicationAwaiter(ctx, reader.ReadCheckpoint, 20*time.Millisecond)
	key, err := tlog.ParseVerifierKey(public)
	must(t, err)
	w.ours.Logs = []trust.Log{{Key: key}}
	limit, stop := context.WithTimeout(ctx, 2*time.Minute)
	defer stop()
	for i := range 4 {
		if i == 2 {
			w.witnesses[0].AddLog(key) // from nothing
		}
		index, text, err := await.Await(limit, appender.Add(limit, tessera.NewEntry(fmt.Append(nil, "entry ", i))))
		must(t, err)
		o, err := w.ours.Open(text)
		if err != nil || o.Checkpoint.Size <= id.Index(index.Index) || len(o.Cosignatures) < 2 {
			t.Fatalf("entry %d: got %+v, %v\n%s", i, o, err, text)
		}
	}
	must(t, shutdown(limit))
	for _, x := range w.witnesses {
		if refused := x.MalformedRequests(); len(refused) > 0 {
			t.Errorf("requests that our witness can't read: %v", refused)
		}
	}
}
