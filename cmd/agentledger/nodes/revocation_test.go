package nodes_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// knownFor is how long a node may rely on what it knows.
const knownFor = time.Second

// revocations is a service of two nodes, and one of its organizations.
type revocations struct {
	t     *testing.T
	nodes [2]*servicetest.Service
	org   *servicetest.Organization
	owner [2]*servicetest.Person // the same user at each node
	names int
}

func newRevocations(t *testing.T, nodes [2]*servicetest.Service, org *servicetest.Organization) *revocations {
	t.Helper()
	r := &revocations{t: t, nodes: nodes, org: org}
	for i, n := range nodes {
		r.owner[i] = n.SignIn(org.Owner)
	}
	return r
}

// wantEverywhere checks the status of a call at each node, repeatedly, so that each has cached the answer. A node that
// can't answer on a busy machine (503) is asked again.
func (r *revocations) wantEverywhere(what string, call func(node int) int, want int) {
	r.t.Helper()
	for range 3 {
		for i := range r.nodes {
			got := call(i)
			for tries := 0; got == http.StatusServiceUnavailable && tries < 10; tries++ {
				got = call(i)
			}
			if got != want {
				r.t.Errorf("%s of %s at node %d: got %d, want %d", what, r.org.Slug, i, got, want)
			}
		}
	}
}

// ingest makes a call with an ingest key.
func (r *revocations) ingest(node int, secret, path string, body any) (status int, answer map[string]any) {
	r.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		r.t.Fatal(err)
	}
	q, err := http.NewRequestWithContext(r.t.Context(), "POST", r.nodes[node].URL+"/v1/ingest"+path, bytes.NewReader(text))
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+secret)
	q.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer a.Body.Close()
	text, err = io.ReadAll(a.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = json.Unmarshal(text, &answer) // a malformed body has no members
	return a.StatusCode, answer
}

// question is what an agent asks before an act.
func (r *revocations) question() any {
	return map[string]any{"organization_id": r.org.ID, "agent_id": r.org.Agent.AgentID, "tool_name": "acme.orders.read",
		"payload": map[string]any{"n": 1}}
}

// send sends an event with the first key of the organization.
func (r *revocations) send(node int) int {
	r.names++
	envelope := r.org.Sign(fmt.Sprintf("event-%d", r.names), nil)
	status, _ := r.ingest(node, r.org.IngestKey.Secret, "/events", json.RawMessage(envelope))
	return status
}

// revokeKey revokes an ingest key at one node.
func (r *revocations) revokeKey(at int) (what string, call func(int) int, revoke func(), after int) {
	var made struct {
		Key struct {
			ID string `json:"key_id"`
		} `json:"key"`
		Secret string `json:"secret"`
	}
	r.owner[at].Call("POST", "/v1/console/ingest-keys", map[string]any{"name": "second"}, &made)
	call = func(node int) int {
		status, _ := r.ingest(node, made.Secret, "/policy/evaluate", r.question())
		return status
	}
	return "an ingest key", call, func() {
		r.owner[at].Call("DELETE", "/v1/console/ingest-keys/"+made.Key.ID, nil, nil)
	}, 401
}

// revokeSession ends the sessions of a member from another session.
func (r *revocations) revokeSession(at int) (what string, call func(int) int, revoke func(), after int) {
	email := r.org.Join("sam", "admin")
	ended := r.member(email)
	other := r.nodes[at].SignIn(email)
	return "a session", ended, func() { other.Call("DELETE", "/v1/id/account/sessions", nil, nil) }, 401
}

// member returns a call of one session of a member.
func (r *revocations) member(email string) func(int) int {
	first := r.nodes[0].SignIn(email)
	both := [2]*servicetest.Person{first, first.At(r.nodes[1])}
	return func(node int) int { return both[node].Get("/v1/id/orgs/" + r.org.ID + "/invitations").Status }
}

// revokeRole gives a member another role.
func (r *revocations) revokeRole(at int) (what string, call func(int) int, revoke func(), after int) {
	email := r.org.Join("rita", "admin")
	var list struct {
		Members []struct {
			ID    string `json:"membership_id"`
			Email string `json:"email"`
		} `json:"members"`
	}
	r.owner[at].Call("GET", "/v1/id/orgs/"+r.org.ID+"/members", nil, &list)
	return "a role", r.member(email), func() {
		for _, m := range list.Members {
			if m.Email == email {
				r.owner[at].Call("PATCH", "/v1/id/orgs/"+r.org.ID+"/members/"+m.ID, map[string]string{"role": "member"}, nil)
			}
		}
	}, 403
}

// revokePolicy activates a policy that denies.
func (r *revocations) revokePolicy(at int) (what string, call func(int) int, revoke func(), after int) {
	call = func(node int) int {
		status, answer := r.ingest(node, r.org.IngestKey.Secret, "/policy/evaluate", r.question())
		if status == 200 && answer["decision"] == "deny" {
			return 403 // represents the decision
		}
		return status
	}
	return "a policy", call, func() {
		r.owner[at].Call("POST", "/v1/console/policies", map[string]any{"policy_id": "p", "name": "No",
			"rules": []any{map[string]any{"rule_id": "d", "tool": "acme.**", "decision": "deny", "reason": "No"}}}, nil)
		r.owner[at].Call("POST", "/v1/console/policies/p/activate", nil, nil)
	}, 403
}

// An ingest key, a session, a role and a policy that are revoked at one node are revoked on all a second later, for
// each organization and at each node. The other organization is not affected.
func TestRevocationsHoldOnAllNodes(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	var nodes [2]*servicetest.Service
	var folders []string
	for i := range nodes {
		n := newUpgraded(t, server.URL(), release{program: servicetest.Program(t)})
		nodes[i], folders = servicetest.At(t, n.main, n.identity), append(folders, n.data)
	}
	time.Sleep(time.Second) // the nodes find each other
	red, blue := nodes[0].Found("Red", "red", "ann@red.example"), nodes[0].Found("Blue", "blue", "bob@blue.example")
	for at, both := range [][2]*servicetest.Organization{{red, blue}, {blue, red}} {
		acting, neighbour := newRevocations(t, nodes, both[0]), newRevocations(t, nodes, both[1])
		neighbour.names = 1000 * at
		session := neighbour.member(neighbour.org.Owner)
		for _, begin := range []func(int) (string, func(int) int, func(), int){acting.revokeKey, acting.revokeSession,
			acting.revokeRole, acting.revokePolicy} {
			what, call, revoke, after := begin(at)
			acting.wantEverywhere(what, call, 200)
			revoke()
			time.Sleep(knownFor)
			acting.wantEverywhere(what+" that is revoked", call, after)
			neighbour.wantEverywhere("an event", neighbour.send, 201)
			neighbour.wantEverywhere("a session", session, 200)
		}
	}
	for _, o := range []*servicetest.Organization{red, blue} {
		awaitAnchors(t, nodes[0], o, folders)
	}
}
