package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/fakeservice"
	"github.com/agentledger/agentledger/tlog"
)

// toolKey returns the key of a tool.
func toolKey(t *testing.T, seed byte) tlog.SignerKey {
	t.Helper()
	private, err := edkey.PrivateFromSeed(bytes.Repeat([]byte{seed}, edkey.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	k, err := tlog.NewSignerKey("did:web:payments.example", private)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// receiptLogs returns a service whose first organization has logged intents and results with receipts, and a function that returns the
// file with the bundle of an event.
func receiptLogs(t *testing.T) (s *fakeservice.Service, bundle func(id.Event, id.Disclosure) string) {
	t.Helper()
	s = fakeservice.Start(t, 2)
	o := s.Organization(0)
	service, err := client.New(client.Config{BaseURL: s.URL, Token: o.Token})
	if err != nil {
		t.Fatal(err)
	}
	signer, err := client.ParseSigner(client.Identity{Organization: o.ID, Agent: o.Agent, Key: o.Key}, o.Seed)
	if err != nil {
		t.Fatal(err)
	}
	at := map[id.Event]int{}
	send := func(e client.Event) {
		envelope, err := signer.SignEvent(e)
		if err == nil {
			_, err = service.Send(t.Context(), envelope)
		}
		if err != nil {
			t.Fatal(err)
		}
		at[e.EventID] = len(at)
	}
	for _, c := range []struct {
		name   id.Event
		change func(*grant.Receipt)
	}{
		{"pay", func(*grant.Receipt) {}},
		{"failed", func(r *grant.Receipt) { r.Status = 503 }},
		{"agent", func(r *grant.Receipt) { r.Agent = "agt_other" }},
		{"tool", func(r *grant.Receipt) { r.Tool = "shop.order" }},
		{"organization", func(r *grant.Receipt) { r.Organization = s.Organization(1).ID }},
		{"act", func(r *grant.Receipt) { r.ActionDigest[0]++ }},
		{"approval", func(r *grant.Receipt) { r.Approval, r.Intent = "apr_1", "" }},
		{"intent", func(r *grant.Receipt) { r.Intent = "pay" }},
		{"granted", func(r *grant.Receipt) { r.Approval, r.Intent = "apr_9", "" }},
	} {
		payload := map[string]any{"phase": "intent", "salt": string(c.name)}
		send(client.Event{EventID: c.name, ActionKind: "tool_call", Tool: "shop.refund", Payload: payload})
		r := grant.Receipt{Organization: o.ID, Agent: o.Agent, Tool: "shop.refund", Intent: c.name, Status: 200, At: 1_795_176_000_123}
		action, err := grant.NewAction(o.ID, o.Agent, "shop.refund", fmt.Appendf(nil, `{"phase":"intent","salt":%q}`, c.name))
		if err != nil {
			t.Fatal(err)
		}
		r.ActionDigest = action.Digest()
		c.change(&r)
		note, err := grant.SignReceipt(r, toolKey(t, 1))
		if err != nil {
			t.Fatal(err)
		}
		result := map[string]any{"phase": "result", "receipt": string(note)}
		if r.Approval == "apr_9" {
			result["approval_id"], result["grant_nonce"] = r.Approval, strings.Repeat("0", 32)
		}
		send(client.Event{EventID: c.name + "_result", ActionKind: "tool_call", Tool: "shop.refund",
			Payload: result, Extra: map[string]any{"parent_event_id": c.name}})
		if c.name == "pay" {
			forged := strings.Replace(string(note), "\n200\n", "\n201\n", 1)
			send(client.Event{EventID: "forged_result", ActionKind: "tool_call", Tool: "shop.refund",
				Payload: map[string]any{"phase": "result", "receipt": forged}, Extra: map[string]any{"parent_event_id": c.name}})
			send(client.Event{EventID: "alone", ActionKind: "tool_call", Tool: "shop.refund", Payload: map[string]any{"receipt": string(note)}})
			send(client.Event{EventID: "none_result", ActionKind: "tool_call", Tool: "shop.refund", Payload: map[string]any{"phase": "result", "receipt": "R-1009"},
				Extra: map[string]any{"parent_event_id": c.name}})
		}
	}
	return s, func(name id.Event, d id.Disclosure) string {
		o.Disclosure = d
		b, err := o.Bundle(at[name])
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "bundle.json")
		if err := writeBundle(file, b); err != nil {
			t.Fatal(err)
		}
		return file
	}
}

func TestVerifyToolReceipt(t *testing.T) {
	s, bundle := receiptLogs(t)
	key, full := s.Organization(0).LogKey().String(), id.DiscloseFull
	tool, other := toolKey(t, 1).Verifier().String(), toolKey(t, 2).Verifier().String()
	const confirmed = "ok    receipt     confirmed by did:web:payments.example: it answered with status 200 at 2026-11-20T12:00:00.123Z, and checked no grant\n"
	for name, tc := range map[string]struct {
		event  id.Event
		args   []string
		status int
		want   string // in output or report
	}{
		"no key":              {"pay_result", nil, 0, "--    receipt     the tool's own statement about the act, unchecked: no key of the tool is given\n"},
		"confirmed":           {"pay_result", []string{"--tool-key", tool, "--intent", bundle("pay", full)}, 0, confirmed},
		"confirmed, two keys": {"pay_result", []string{"--tool-key", other, "--tool-key", tool, "--intent", bundle("pay", full)}, 0, confirmed},
		"JSON": {"pay_result", []string{"--json", "--tool-key", tool, "--intent", bundle("pay", full)}, 0,
			`"tool_receipt":{"ok":true,"confirmed":{"by":"did:web:payments.example","status":200,"at":"2026-11-20T12:00:00.123Z"}}`},
		"a grant":                       {"granted_result", []string{"--tool-key", tool, "--intent", bundle("granted", full)}, 0, strings.Replace(confirmed, ", and checked no grant", "", 1)},
		"a grant, JSON":                 {"granted_result", []string{"--json", "--tool-key", tool, "--intent", bundle("granted", full)}, 0, `"approval_id":"apr_9"}}`},
		"the receipt of another intent": {"intent_result", []string{"--tool-key", tool, "--intent", bundle("intent", full)}, 1, "not confirmed: the receipt is for another intent"},
		"failed at the tool":            {"failed_result", []string{"--tool-key", tool, "--intent", bundle("failed", full)}, 0, "it answered with status 503"},
		"no intent":                     {"pay_result", []string{"--tool-key", tool}, 2, "signed by did:web:payments.example with status 200, and which act it is for is not known without the envelope of the intent pay\n"},
		"intent not disclosed":          {"pay_result", []string{"--tool-key", tool, "--intent", bundle("pay", id.DiscloseRecord)}, 2, "without the envelope of the intent pay"},
		"another intent":                {"pay_result", []string{"--tool-key", tool, "--intent", bundle("act", full)}, 2, "--intent: expected the bundle of the event pay\n"},
		"no such file":                  {"pay_result", []string{"--tool-key", tool, "--intent", "none"}, 2, "--intent"},
		"another key":                   {"pay_result", []string{"--tool-key", other, "--intent", bundle("pay", full)}, 2, "the receipt: signed by none of the tools' keys that were given\n"},
		"not a result":                  {"alone", []string{"--tool-key", tool}, 2, "the event is not the result of an intent"},
		"no receipt":                    {"none_result", []string{"--tool-key", tool, "--intent", bundle("pay", full)}, 2, "can't tell whether the tool did it: the event has no receipt of a tool\n"},
		"forged":                        {"forged_result", []string{"--tool-key", tool, "--intent", bundle("pay", full)}, 1, "FAIL  receipt     of the tool: open receipt: "},
		"another agent":                 {"agent_result", []string{"--tool-key", tool, "--intent", bundle("agent", full)}, 1, "not confirmed: the receipt is for another agent"},
		"another tool":                  {"tool_result", []string{"--tool-key", tool}, 1, "the receipt is for another tool"},
		"another organization":          {"organization_result", []string{"--tool-key", tool}, 1, "the receipt is for another organization"},
		"another act":                   {"act_result", []string{"--tool-key", tool, "--intent", bundle("act", full)}, 1, "the receipt is for another act"},
		"another approval":              {"approval_result", []string{"--tool-key", tool, "--intent", bundle("approval", full)}, 1, "the receipt is for another approval"},
		"wrong, without a key":          {"act_result", nil, 0, "unchecked"},
		"intent without a key":          {"pay_result", []string{"--intent", bundle("pay", full)}, 2, "--intent needs --tool-key"},
		"a key that is none":            {"pay_result", []string{"--tool-key", "x"}, 2, "--tool-key"},
	} {
		got := aps(t, "", append([]string{"verify", bundle(tc.event, full), "--key", key}, tc.args...)...)
		if got.status != tc.status || !strings.Contains(got.out+got.report, tc.want) {
			t.Errorf("%s: got %+v, want %d, %s", name, got, tc.status, tc.want)
		}
	}
	if got := aps(t, "", "verify", bundle("pay_result", id.DiscloseRecord), "--key", key, "--tool-key", tool); got.status != 2 || !strings.Contains(got.report, "the envelope is not disclosed") {
		t.Errorf("not disclosed: got %+v", got)
	}
	if got := aps(t, "", "verify", bundle("pay_result", full), "--tool-key", tool, "--intent", bundle("pay", full)); got.status != 2 || !strings.Contains(got.report, "whose log") {
		t.Errorf("no key of the log: got %+v", got)
	}
	slug := string(s.Organization(0).Slug)
	s.Organization(0).Disclosure = full
	if got := aps(t, "", "verify", "pay_result", "--url", s.URL, "--slug", slug, "--key", key, "--tool-key", tool); got.status != 0 || !strings.Contains(got.out, confirmed) {
		t.Errorf("fetched: got %+v", got)
	}
}

func TestToolKeysAreBounded(t *testing.T) {
	args := []string{"verify", "-"}
	for range maxToolKeys + 1 {
		args = append(args, "--tool-key", toolKey(t, 1).Verifier().String())
	}
	if got := aps(t, "", args...); got.status != 2 || !strings.Contains(got.report, "--tool-key may be given at most 256 times") {
		t.Errorf("got %+v", got)
	}
}
