package witness

import (
	"net/netip"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/http/egress/egresstest"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
)

// An organization that names a witness learns nothing about the operator's network: a name with a private address, one
// that does not exist and one where nobody listens look alike.
func TestWitnessesWithoutAnAnswerLookAlike(t *testing.T) {
	for title, resolved := range map[string]string{
		"unknown": "", "private": "10.0.0.1", "loopback": "127.0.0.1", "metadata service": "169.254.169.254", "nobody listens": "127.0.0.9",
	} {
		w := newWorld(t)
		w.client = egress.New(egress.Options{
			Allow:    []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}, // as if it were a public address
			Resolver: egresstest.Resolver(t, func(int) string { return resolved }), Timeout: 5 * time.Second, MaxAnswer: MaxAnswer,
		})
		w.start("")
		key := witnesstest.New(t, "own.example").Signer.Key().String()
		w.name(red, org.Witnessing{Policy: "witness own " + key + " https://hook.example:9/\nquorum own\n"})
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(2 * time.Millisecond) {
			standing, err := w.witnesses.Status(t.Context(), red)
			if err != nil {
				t.Fatal(err)
			}
			got := standing.Witnesses[0]
			if got.Last == "" && time.Now().Before(end) {
				continue
			}
			if got.Last != string(unwell) || got.NotBefore != 0 || got.Acknowledged != 0 || standing.Newest != nil {
				t.Errorf("%s: got %+v", title, got)
			}
			break
		}
		w.stop()
	}
}
