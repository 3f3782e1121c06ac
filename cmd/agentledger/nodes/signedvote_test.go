package nodes_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/passkeytest"
	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// publicURL is a URL whose pages may use passkeys.
const publicURL = "http://localhost:8080"

// voter is an approver with a passkey that signs votes in red and in blue.
type voter struct {
	*servicetest.Person
	t   *testing.T
	key *passkeytest.Authenticator
}

// newVoter creates a passkey and registers it as a voter key, all at one node.
func newVoter(t *testing.T, at *servicetest.Service, email string) *voter {
	t.Helper()
	v := &voter{at.SignIn(email), t, passkeytest.New(t, publicURL)}
	var begun json.RawMessage
	v.Call(http.MethodPost, "/v1/id/account/passkeys/begin", nil, &begun)
	v.Call(http.MethodPost, "/v1/id/account/passkeys/finish",
		map[string]any{"name": "phone", "credential": json.RawMessage(v.key.Create(begun))}, nil)
	body := map[string]any{"credential_id": signedvote.Bytes(v.key.Credential)}
	var o struct {
		Time       string          `json:"time"`
		Possession json.RawMessage `json:"possession"`
	}
	v.Call(http.MethodPost, "/v1/console/voter-keys/options", body, &o)
	body["possession"] = v.key.Assert(o.Possession, o.Time)
	v.Call(http.MethodPost, "/v1/console/voter-keys", body, nil)
	return v
}

// vote signs a vote and casts it at a node.
func (v *voter) vote(at *servicetest.Service, a servicetest.Asked) servicetest.Answer {
	v.t.Helper()
	p, path := v.At(at), "/v1/console/approvals/"+a.ID+"/votes"
	ballot := map[string]any{"vote": "approve", "action_digest": a.ActionDigest, "comment": "in budget"}
	var o struct {
		Time      string          `json:"time"`
		PublicKey json.RawMessage `json:"public_key"`
	}
	p.Call(http.MethodPost, path+"/options", ballot, &o)
	ballot["assertion"] = v.key.Assert(o.PublicKey, o.Time)
	return p.Try(http.MethodPost, path, ballot)
}

// awaitOK reads a path as a user until a node responds with 200, because the organization may first get another owner.
func awaitOK(t *testing.T, p *servicetest.Person, path string) servicetest.Answer {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		answer := p.Get(path)
		if answer.Status == http.StatusOK {
			return answer
		}
		if answer.Status != http.StatusServiceUnavailable || time.Now().After(end) {
			t.Fatalf("%s: got %d %s", path, answer.Status, answer.Body)
		}
	}
}

// A passkey is registered through one node, an approval is requested through another, and the signed vote is cast
// through a third: first one that does not own the log, then its owner. Each time, the node that acknowledged the vote
// is killed at once. No vote is lost, and the evidence pack of the other nodes proves both. The other organization is
// not affected.
func TestSignedVoteOnNodes(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	var nodes []*servicetest.Node
	var at []*servicetest.Service
	for range 4 {
		n := servicetest.StartNode(t, server.URL(), nil, "--public-url", publicURL)
		nodes, at = append(nodes, n), append(at, servicetest.At(t, n.Main, n.Identity))
	}
	for _, n := range nodes {
		n.AwaitShards(len(nodes))
	}
	red, blue := at[0].Found("Red", "red", "ann@red.example"), at[1].Found("Blue", "blue", "bob@blue.example")
	owners := map[string]*servicetest.Person{"red": at[0].SignIn(red.Owner), "blue": at[0].SignIn(blue.Owner)}
	for _, owner := range owners {
		owner.Call(http.MethodPost, "/v1/console/policies", map[string]any{"policy_id": "p", "name": "Refunds", "rules": []any{map[string]any{
			"rule_id": "r", "tool": "acme.refund", "decision": "allow_with_obligation",
			"obligations": []any{map[string]any{"type": "human_approval", "approvals": 1, "ttl_seconds": 3600, "signed": true}}}}}, nil)
		owner.Call(http.MethodPost, "/v1/console/policies/p/activate", nil, nil)
	}
	owner := 0
	for i, n := range nodes {
		if n.OwnerOf(headPath("red")) == n.ID {
			owner = i
		}
	}
	next := func(k int) int { return (owner + k) % len(nodes) }
	registering, asking, other := next(1), next(2), next(3)
	eve := newVoter(t, at[registering], red.At(at[registering]).Join("eve", "approver"))
	neighbour := newVoter(t, at[registering], blue.Join("eva", "approver"))

	// The other node has not used the key of either organization before.
	for _, voting := range []int{other, owner} {
		awaitOK(t, owners["red"].At(at[asking]), "/v1/console/organization")
		approval := red.At(at[asking]).Ask(map[string]any{"trace_id": "trc-" + at[voting].URL[len("http://"):]})
		if answer := neighbour.At(at[voting]).Try(http.MethodGet, "/v1/console/approvals/"+approval.ID, nil); answer.Status != http.StatusNotFound {
			t.Errorf("blue's approver sees red's approval: %d", answer.Status)
		}
		answer := eve.vote(at[voting], approval)
		_ = nodes[voting].End(syscall.SIGKILL)
		answer.Want(t, "the vote", http.StatusOK, `"status":"approved"`, signedvote.Bytes(eve.key.Credential).String())
		for _, i := range []int{registering, asking} {
			awaitOK(t, eve.At(at[i]), "/v1/console/approvals/"+approval.ID).
				Want(t, "after the kill", http.StatusOK, `"status":"approved"`, signedvote.Bytes(eve.key.Credential).String())
		}
		red.At(at[asking]).Consume(approval)
	}
	awaitOK(t, owners["blue"].At(at[asking]), "/v1/console/organization") // its owner may have been killed, too
	approval := blue.At(at[asking]).Ask(nil)
	awaitOK(t, neighbour.At(at[registering]), "/v1/console/approvals/"+approval.ID)
	neighbour.vote(at[registering], approval).Want(t, "blue's vote", http.StatusOK, `"status":"approved"`)

	for slug, votes := range map[string]int{"red": 2, "blue": 1} {
		survivor := owners[slug].At(at[asking])
		pack := filepath.Join(t.TempDir(), "pack.zip")
		if err := os.WriteFile(pack, []byte(awaitOK(t, survivor, "/v1/console/evidence.zip?envelopes=1").Body), 0o600); err != nil {
			t.Fatal(err)
		}
		key := map[string]string{"red": red.LogKey, "blue": blue.LogKey}[slug]
		aps := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(servicetest.Program(t)), "aps"), "verify", pack, "--key", key)
		out, err := aps.CombinedOutput()
		if got := strings.Count(string(out), "approve, signed by the passkey"); err != nil || got != votes {
			t.Errorf("%s: %d signed votes, want %d: %v\n%s", slug, got, votes, err, out)
		}
	}
}
