package approval

import (
	"testing"

	"github.com/agentledger/agentledger/id"
)

// The exact bytes of the documents about an approval, which are stored until they are delivered.
func TestNoticeDocuments(t *testing.T) {
	bare := &record{CreatedAt: 1_700_000_000_000, ExpiresAt: 1_700_000_060_000}
	full := &record{Agent: "agent-1", Tool: "a.b.c", ActionDigest: id.Hash{1}, Trace: "trace-1", PolicyID: "p", PolicyVersion: 7,
		RuleID: "r", Reason: "above \"100\" <&>\t\x01", Quorum: 2, Votes: []Vote{{Vote: Approve, Comment: "ok\n", Code: "fine"}},
		CreatedAt: 1_700_000_000_000, ExpiresAt: 1_700_000_060_000}
	for want, got := range map[string]any{
		`{"approval_id":"a-1","status":"pending","action_digest":"0000000000000000000000000000000000000000000000000000000000000000","agent_id":"","trace_id":"","comment":null,"reason_code":null}`:                                                                                                                                                                                                                         newCallback("a-1", bare, Pending),
		`{"approval_id":"a-1","status":"pending","action_digest":"0000000000000000000000000000000000000000000000000000000000000000","agent_id":"","trace_id":"","comment":null,"reason_code":null,"tool_name":"","policy_id":"","policy_version":0,"rule_id":"","reason":"","quorum":0,"created_at":"2023-11-14T22:13:20.000Z","expires_at":"2023-11-14T22:14:20.000Z"}`:                                                    newNotice("a-1", bare, Pending),
		`{"approval_id":"a-1","status":"approved","action_digest":"0100000000000000000000000000000000000000000000000000000000000000","agent_id":"agent-1","trace_id":"trace-1","comment":"ok\n","reason_code":"fine","tool_name":"a.b.c","policy_id":"p","policy_version":7,"rule_id":"r","reason":"above \"100\" <&>\t\u0001","quorum":2,"created_at":"2023-11-14T22:13:20.000Z","expires_at":"2023-11-14T22:14:20.000Z"}`: newNotice("a-1", full, Approved),
	} {
		if got := string(document(got)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// The text for people has the numbers of a tagged payload.
func TestNoticeHasNumbers(t *testing.T) {
	asked := &record{Payload: []byte(`{"$tagged":true,"id":{"$number":"9007199254740993"}}`)}
	if m, ok := noticeMessage("a-1", asked, "requested"); !ok || m.Detail != `{"id":9007199254740993}` {
		t.Errorf("got %q", m.Detail)
	}
}
