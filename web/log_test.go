package web_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/publicapi"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
	"github.com/agentledger/agentledger/verify"
)

// witnessed is a log with three witnesses: the first cosigned its head, the second an older checkpoint, the third
// nothing.
type witnessed struct {
	publicapi.Reader
	policy *trust.Policy
	first  tlog.WitnessSigner
	older  []byte
}

func (w *witnessed) LogPolicy(context.Context, id.Tenant) (*trust.Policy, error) {
	return w.policy, nil
}

func (w *witnessed) LogCosigned(context.Context, id.Tenant) ([]byte, error) { return w.older, nil }

func (w *witnessed) LogHead(ctx context.Context, t id.Tenant, slug id.Slug) (verify.Head, error) {
	head, err := w.Reader.LogHead(ctx, t, slug)
	if err == nil {
		head.Checkpoint = string(cosign([]byte(head.Checkpoint), w.first, 1_800_000_000_000))
	}
	return head, err
}

func cosign(note []byte, by tlog.WitnessSigner, at id.Instant) []byte {
	parsed, err := tlog.ParseNote(note)
	if err == nil {
		parsed, err = parsed.Add(by.Cosign(parsed.Text, at))
	}
	if err != nil {
		panic(err)
	}
	return parsed.Bytes()
}

// The home page shows the latest cosignature of each witness, even for an older tree.
func TestCosignaturesOnHome(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", nil)
	head, err := w.public.LogHead(t.Context(), ledgertest.Red, "red")
	if err != nil {
		t.Fatal(err)
	}
	var signers []tlog.WitnessSigner
	policy := &trust.Policy{Quorum: "any-two"}
	for _, name := range []string{"first.example", "second.example", "third.example"} {
		s, err := tlog.NewWitnessSigner(name, edkey.NewPrivate())
		if err != nil {
			t.Fatal(err)
		}
		signers = append(signers, s)
		policy.Witnesses = append(policy.Witnesses, trust.Witness{Name: name, Key: s.Key()})
	}
	older := cosign(cosign([]byte(head.Checkpoint), signers[0], 1_700_000_000_000), signers[1], 1_700_000_060_000)
	log := &witnessed{w.public, policy, signers[0], older}
	w.append(ledgertest.Red, id.DiscloseFull, "two", nil)
	w.serve(log)
	const size = `cosigned the size %d at <time datetime="%s"`
	body := w.want("/log/red", fmt.Sprintf(size, 2, id.Instant(1_800_000_000_000)),
		fmt.Sprintf(size, 1, id.Instant(1_700_000_060_000)))
	if got := strings.Count(body, "no cosignature is known"); got != 1 {
		t.Errorf("%d witnesses have no cosignature", got)
	}
	log.older = cosign(older, signers[2], 1_700_000_120_000) // the home page follows the latest checkpoint with a quorum
	w.want("/log/red", fmt.Sprintf(size, 1, id.Instant(1_700_000_120_000)))
	if body := w.page("/log/blue", http.StatusOK).Body.String(); strings.Contains(body, "cosigned the size 1 ") {
		t.Error("the other log has cosignatures of this one")
	}
}
