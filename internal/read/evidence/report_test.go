package evidence_test

import (
	"archive/zip"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/verify/pack"
)

// file returns a file of a pack.
func file(t testing.TB, text, name string) string {
	t.Helper()
	z, err := zip.NewReader(strings.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := z.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// The page contains users' texts as text, no script and no external resource, and the rows within its bounds.
func TestReport(t *testing.T) {
	w := newWorld(t)
	w.fill(t, red, 4)
	w.erase(t, red, id.Range{Begin: 1, End: 2})
	const rows = 1000
	for i := range rows + 30 {
		w.appendEvent(t, red, map[string]any{
			"schema_version": 1, "event_id": fmt.Sprintf("many-%d", i), "trace_id": "trc", "agent_id": "agt_1", "key_id": "key",
			"organization_id": ledgertest.Organization(red).String(), "emitted_at": "2026-11-20T12:00:00.000Z",
			"actor_type": "agent", "actor_principal": "svc", "action_kind": "tool_call", "policy_decision": "allow",
			"payload": map[string]any{}, "tool_name": fmt.Sprintf("acme.tool%d", i),
		})
	}
	page := file(t, w.export(t, red, "agent_id=agt_1"), pack.FileReport)
	for _, want := range []string{
		"Acme &lt;script&gt;alert(1)&lt;/script&gt; &amp; ", "events are shown, 3 are withheld,",
		"No withheld event fits the request.", "31 earlier acts are in <code>acts.ndjson</code>", "Acts by The agt_1", "<b>1,031</b>", "Every other call is allowed.", "pol", w.policy.Digest().String(),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	for _, forbidden := range []string{"<script", "http:", "https:", "src=", "href=", "@import", "url("} {
		if strings.Contains(page, forbidden) {
			t.Errorf("the page has %q", forbidden)
		}
	}
	if got := strings.Count(page, "<time "); got != rows {
		t.Errorf("got %d rows of acts, want %d", got, rows)
	}
	whole := file(t, w.export(t, red, ""), pack.FileReport)
	if !strings.Contains(whole, "person_request") || !strings.Contains(whole, "[1, 2)") || strings.Contains(whole, "No withheld") {
		t.Error("the page of everything does not tell the erasure, or speaks of a filter")
	}
}

// The report names who voted or revoked, and the member in whose place a deputy did. Only votes with a represented member
// name two, and the other organization's report names none.
func TestReportNamesRepresentedMembers(t *testing.T) {
	s := &tale{world: newWorld(t), t: t, random: rand.New(rand.NewPCG(1, 1))}
	approved := s.judged(id.AllowWithObligation)
	for _, name := range []string{"apr-1", "apr-2"} {
		approved.ApprovalID = name
		s.append(event.SignerAgent, map[string]any{"tool_name": "acme.pay", "payload": map[string]any{}}, approved)
		s.decide(name, "requested", "ik_1", nil)
		s.decide(name, "voted", "acc_3", map[string]any{"vote": "approve"})
		s.decide(name, "approved", "acc_1", map[string]any{"vote": "approve", "deputy_for": "acc_2"})
	}
	s.decide("apr-2", "revoked", "acc_4", map[string]any{"deputy_for": "acc_5"})
	for tenant, counts := range map[id.Tenant][2]int{red: {3, 2}, blue: {0, 0}} {
		page := file(t, s.export(t, tenant, "envelopes=1"), pack.FileReport)
		for i, text := range []string{"<bdi>acc_1</bdi> for <bdi>acc_2</bdi>", "<bdi>acc_4</bdi> for <bdi>acc_5</bdi>"} {
			if got := strings.Count(page, text); got != counts[i] {
				t.Errorf("tenant %d: got %q %d times, want %d", tenant, text, got, counts[i])
			}
		}
		if strings.Count(page, "</bdi> for <bdi>") != counts[0]+counts[1] {
			t.Errorf("tenant %d: other users represent somebody", tenant)
		}
	}
}
