package evidence_test

import (
	"archive/zip"
	"fmt"
	"io"
	"strings"
	"testing"

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
	const rows = 200
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
		"Acme &lt;script&gt;alert(1)&lt;/script&gt; &amp; ", "events are shown, 3 are withheld",
		"No withheld event fits the request.", "32 more rows are not shown.", "pol", w.policy.Digest().String(),
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
	if got := strings.Count(page, "<td>acme.") + strings.Count(page, "<td>(no tool"); got != rows {
		t.Errorf("got %d rows of tools, want %d", got, rows)
	}
	whole := file(t, w.export(t, red, ""), pack.FileReport)
	if !strings.Contains(whole, "person_request") || !strings.Contains(whole, "[1, 2)") || strings.Contains(whole, "No withheld") {
		t.Error("the page of everything does not tell the erasure, or speaks of a filter")
	}
}
