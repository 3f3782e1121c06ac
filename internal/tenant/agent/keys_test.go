package agent_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

// The proof of one key, spelled out: this is what other clients have to make.
func TestProofVector(t *testing.T) {
	private, err := edkey.PrivateFromSeed(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	const message = "APS1-KEY\n00000000-0000-0000-0000-00000000000b\nbilling-bot\nhost#1\n6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=\n"
	const proof = "iRfcAgZccqW5akUd6ZtTqgeM+kcy9LXwOrrdc6Ljr98F7a2M4XUeirToZB4laK+fLLBvVV/hfgaityc4piW6AQ=="
	r := registration(red, "billing-bot", "host#1", private)
	if got := agent.ProofMessage(ledgertest.Organization(red), "billing-bot", "host#1", private.Public()); string(got) != message {
		t.Errorf("message: got %q, want %q", got, message)
	}
	if r.Proof != proof {
		t.Errorf("proof: got %s, want %s", r.Proof, proof)
	}
}

func TestRegisterKey(t *testing.T) {
	w := newWorld(t)
	w.create(red, "billing-bot")
	private := edkey.NewPrivate()
	got := w.register(red, "billing-bot", "host#1", private)
	want := agent.Key{
		Agent: "billing-bot", ID: "host#1", Public: private.Public(), Multikey: did.Multikey(private.Public().Bytes()), Custody: event.CustodyAgent,
		Status: agent.Active, RegisteredAt: id.InstantOf(w.Clock()), RegisteredBy: ann,
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if found, err := w.signingKey(red, "billing-bot", "host#1"); err != nil || found != want {
		t.Errorf("got %+v, %v; want %+v", found, err, want)
	}
	statements := w.Audit(t, red)
	if last := statements[len(statements)-1]; last != (ledgertest.Statement{Kind: "ledger_key_registered", Principal: ann, Payload: fmt.Sprintf(
		`{"agent_id":"billing-bot","custody":"agent","key_id":"host#1","public_key":"%s"}`, multikey(private.Public()))}) {
		t.Errorf("got %+v", last)
	}
	if named := w.register(red, "billing-bot", "", edkey.NewPrivate()); !strings.HasPrefix(string(named.ID), "key_") {
		t.Errorf("got key id %s", named.ID)
	}
}

// Each mutation of a valid registration is refused and leaves nothing behind.
func TestRegisterKeyRefuses(t *testing.T) {
	w := newWorld(t)
	w.create(red, "billing-bot")
	w.create(red, "other-bot")
	w.create(blue, "blue-bot")
	private := edkey.NewPrivate()
	const proof = "proof_b64 does not prove possession of the key"
	const publicForm = "public_key_b64 must be the base64 of 32 bytes"
	const proofForm = "proof_b64 must be the base64 of 64 bytes"
	const unacceptable = "public_key_b64 is not an acceptable Ed25519 public key"
	const reserved = "key_id must not begin with system_ or bridge_"
	const keyForm = "key_id must be 1 to 256 of A-Z a-z 0-9 . _ : # -"
	good := registration(red, "billing-bot", "k1", private)
	nameless := registration(red, "billing-bot", "", private)
	for name, tc := range map[string]struct {
		agent   id.Agent
		mutate  func(*agent.Registration)
		kind    fault.Kind
		message string
	}{
		"other organization": {"billing-bot", func(r *agent.Registration) { *r = registration(blue, "billing-bot", "k1", private) }, fault.Invalid, proof},
		"other agent":        {"other-bot", func(*agent.Registration) {}, fault.Invalid, proof},
		"other key id":       {"billing-bot", func(r *agent.Registration) { r.KeyID = "k2" }, fault.Invalid, proof},
		"key id left out":    {"billing-bot", func(r *agent.Registration) { r.KeyID = "" }, fault.Invalid, proof},
		"key id put in":      {"billing-bot", func(r *agent.Registration) { r.Proof = nameless.Proof }, fault.Invalid, proof},
		"other public key":   {"billing-bot", func(r *agent.Registration) { r.PublicKey = edkey.NewPrivate().Public().String() }, fault.Invalid, proof},
		"proof by another key": {"billing-bot", func(r *agent.Registration) {
			r.Proof = registration(red, "billing-bot", "k1", edkey.NewPrivate()).Proof
		}, fault.Invalid, proof},
		"no proof":              {"billing-bot", func(r *agent.Registration) { r.Proof = "" }, fault.Invalid, proofForm},
		"short proof":           {"billing-bot", func(r *agent.Registration) { r.Proof = encode(make([]byte, 63)) }, fault.Invalid, proofForm},
		"proof of zeros":        {"billing-bot", func(r *agent.Registration) { r.Proof = encode(make([]byte, 64)) }, fault.Invalid, proof},
		"proof without padding": {"billing-bot", func(r *agent.Registration) { r.Proof = strings.TrimRight(r.Proof, "=") }, fault.Invalid, proofForm},
		"proof with line end":   {"billing-bot", func(r *agent.Registration) { r.Proof += "\n" }, fault.Invalid, proofForm},
		"no public key":         {"billing-bot", func(r *agent.Registration) { r.PublicKey = "" }, fault.Invalid, publicForm},
		"hex public key":        {"billing-bot", func(r *agent.Registration) { p := private.Public().Bytes(); r.PublicKey = hex.EncodeToString(p[:]) }, fault.Invalid, publicForm},
		"long public key":       {"billing-bot", func(r *agent.Registration) { r.PublicKey = encode(make([]byte, 33)) }, fault.Invalid, publicForm},
		"small order":           {"billing-bot", func(r *agent.Registration) { r.PublicKey = encode(append([]byte{1}, make([]byte, 31)...)) }, fault.Invalid, unacceptable},
		"not a point":           {"billing-bot", func(r *agent.Registration) { r.PublicKey = encode(append([]byte{2}, make([]byte, 31)...)) }, fault.Invalid, unacceptable},
		"system key":            {"billing-bot", func(r *agent.Registration) { r.KeyID = "system_1" }, fault.Invalid, reserved},
		"bridge key":            {"billing-bot", func(r *agent.Registration) { r.KeyID = "bridge_1" }, fault.Invalid, reserved},
		"slash in key id":       {"billing-bot", func(r *agent.Registration) { r.KeyID = "a/b" }, fault.Invalid, keyForm},
		"long key id":           {"billing-bot", func(r *agent.Registration) { r.KeyID = id.Key(strings.Repeat("k", 257)) }, fault.Invalid, keyForm},
		"unknown agent":         {"nobody", func(*agent.Registration) {}, fault.NotFound, "Not found"},
		"blue's agent":          {"blue-bot", func(*agent.Registration) {}, fault.NotFound, "Not found"},
		"malformed agent":       {"billing-bot/k", func(*agent.Registration) {}, fault.NotFound, "Not found"},
	} {
		r, size := good, w.State(t, red).Size()
		tc.mutate(&r)
		_, err := w.agents.RegisterKey(t.Context(), red, ann, tc.agent, r)
		refused(t, name, err, tc.kind, tc.message)
		if got := w.State(t, red).Size(); got != size {
			t.Errorf("%s: the refusal left %d events", name, got-size)
		}
	}
	if known, err := w.keyKnown(private.Public().Bytes()); known || err != nil {
		t.Errorf("after refusals only: got %v, %v; want false", known, err)
	}
	w.register(red, "billing-bot", "k1", private)
}

// A public key and a key id can be used only once in an organization, forever. Organizations are independent of each
// other.
func TestKeysAreUsedOnce(t *testing.T) {
	const keyUsed, publicUsed = "key_id was used before", "The public key was used before"
	w := newWorld(t)
	bots := map[id.Tenant]id.Agent{red: "red-bot", blue: "blue-bot"}
	private := edkey.NewPrivate()
	for tenant, bot := range bots {
		w.create(tenant, bot)
		w.register(tenant, bot, "k1", private)
	}
	for _, end := range []func(id.Tenant) error{
		func(id.Tenant) error { return nil },
		func(tenant id.Tenant) error {
			_, err := w.agents.RetireKey(t.Context(), tenant, ann, bots[tenant], "k1")
			return err
		},
		func(tenant id.Tenant) error {
			_, err := w.agents.RevokeKey(t.Context(), tenant, ann, bots[tenant], "k1", agent.Revocation{})
			return err
		},
	} {
		for tenant := range bots {
			if err := end(tenant); err != nil {
				t.Fatal(err)
			}
			for _, bot := range []id.Agent{bots[tenant], w.first[tenant].Agent} {
				_, err := w.agents.RegisterKey(t.Context(), tenant, ann, bot, registration(tenant, bot, "k1", edkey.NewPrivate()))
				refused(t, "key id again", err, fault.Conflict, keyUsed)
				_, err = w.agents.RegisterKey(t.Context(), tenant, ann, bot, registration(tenant, bot, "k2", private))
				refused(t, "public key again", err, fault.Conflict, publicUsed)
				_, err = w.agents.RegisterKey(t.Context(), tenant, ann, bot, registration(tenant, bot, "k1", private))
				refused(t, "all again", err, fault.Conflict, keyUsed)
				_, err = w.agents.RegisterKey(t.Context(), tenant, ann, bot, registration(tenant, bot, "k3", w.first[tenant].Private))
				refused(t, "the first agent's public key", err, fault.Conflict, publicUsed)
			}
		}
	}
}

func TestRegisterKeyAtOnce(t *testing.T) {
	w := newWorld(t)
	private := edkey.NewPrivate()
	var group sync.WaitGroup
	var mu sync.Mutex
	registered := map[id.Tenant]int{}
	for i := range 6 {
		for _, tenant := range []id.Tenant{red, blue} {
			group.Go(func() {
				bot := w.first[tenant].Agent
				_, err := w.agents.RegisterKey(t.Context(), tenant, ann, bot, registration(tenant, bot, id.Key(fmt.Sprintf("k%d", i)), private))
				if err != nil {
					refused(t, "loser", err, fault.Conflict, "The public key was used before")
					return
				}
				mu.Lock()
				registered[tenant]++
				mu.Unlock()
			})
		}
	}
	group.Wait()
	for _, tenant := range []id.Tenant{red, blue} {
		if statements := w.Audit(t, tenant); registered[tenant] != 1 || len(statements) != 1 {
			t.Errorf("tenant %d: got %d registrations and statements %+v, want 1", tenant, registered[tenant], statements)
		}
	}
}
