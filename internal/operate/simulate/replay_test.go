package simulate_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/simulate"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/policy"
)

func members(d []simulate.Difference) (all []string) {
	for _, one := range d {
		all = append(all, one.Member)
	}
	return all
}

// The documents of an event lead to its decision. If one of them is changed, it is the one that is named.
func TestReplay(t *testing.T) {
	w := newWorld(t)
	c, p := compile(t, `[{"rule_id":"cap","tool":"acme.pay.*","decision":"deny","when":"payload.amount > 100"},
		{"rule_id":"night","tool":"acme.pay.*","decision":"deny","when":"now.getHours() > 12"},
		{"rule_id":"sum","tool":"acme.pay.*","decision":"allow_with_obligation","limit":{"limit_id":"l","sum":"amount","by":"agent","window_seconds":60,"max":100}}]`)
	record, envelope := w.send(red, c, "acme.pay.refund", `{"amount":70}`, id.Allow)
	other := w.envelope(red, "acme.pay.refund", `{"amount":80}`, id.Deny)
	silent := w.envelope(red, "", `{"amount":70}`, id.Allow)
	for name, tc := range map[string]struct {
		change   func(p *policy.Policy, r *event.Record)
		envelope *event.Envelope
		want     []string
	}{
		"nothing":              {nil, envelope, nil},
		"another envelope":     {nil, other, []string{"event_digest", "policy.declared", "policy.input_digest"}},
		"one without a tool":   {nil, silent, []string{"event_digest", "policy.evaluated", "policy.input_digest"}},
		"another policy":       {func(p *policy.Policy, _ *event.Record) { p.ID = "other" }, envelope, []string{"policy.policy_id", "policy.policy_digest"}},
		"another version":      {func(p *policy.Policy, _ *event.Record) { p.Version = 4 }, envelope, []string{"policy.policy_version", "policy.policy_digest"}},
		"no id and version":    {func(p *policy.Policy, _ *event.Record) { p.ID, p.Version = "", 0 }, envelope, nil},
		"another rule":         {func(p *policy.Policy, _ *event.Record) { p.Rules = p.Rules[:2] }, envelope, []string{"policy.policy_digest"}},
		"another time":         {func(_ *policy.Policy, r *event.Record) { r.Policy.EvaluatedAt += 6 * 3600 * 1000 }, envelope, []string{"policy.rule_id", "policy.effective"}},
		"another decision":     {func(_ *policy.Policy, r *event.Record) { r.Policy.Effective = id.Deny }, envelope, []string{"policy.effective"}},
		"another rule decided": {func(_ *policy.Policy, r *event.Record) { r.Policy.RuleID = "cap" }, envelope, []string{"policy.rule_id"}},
		"another engine":       {func(_ *policy.Policy, r *event.Record) { r.Policy.Engine = "x" }, envelope, []string{"policy.engine"}},
		"another input":        {func(_ *policy.Policy, r *event.Record) { r.Policy.InputDigest[0]++ }, envelope, []string{"policy.input_digest"}},
		"a limit was reached":  {func(_ *policy.Policy, r *event.Record) { r.Policy.Limits = tally("l", 31, 70) }, envelope, []string{"policy.rule_id", "policy.effective"}},
		"a limit was near":     {func(_ *policy.Policy, r *event.Record) { r.Policy.Limits = tally("l", 30, 70) }, envelope, nil},
		"more was added":       {func(_ *policy.Policy, r *event.Record) { r.Policy.Limits = tally("l", 0, 71) }, envelope, []string{"policy.limits l"}},
		"to another limit":     {func(_ *policy.Policy, r *event.Record) { r.Policy.Limits = tally("m", 0, 70) }, envelope, []string{"policy.limits l", "policy.limits m"}},
		"to none":              {func(_ *policy.Policy, r *event.Record) { r.Policy.Limits = nil }, envelope, []string{"policy.limits l"}},
	} {
		r, changed := *record, *p
		if tc.change != nil {
			tc.change(&changed, &r)
		}
		got, err := simulate.Replay(&changed, &r, tc.envelope)
		if err != nil || !slices.Equal(members(got.Differences), tc.want) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, tc.want)
		}
	}
}

func tally(limit string, before, added int64) []byte {
	return policy.AppendTallies(nil, []policy.Tally{{LimitID: limit, Before: decimal.FromInt(before), Added: decimal.FromInt(added)}})
}

// An event without a tool, and one for which no policy was active.
func TestReplayWithoutPolicy(t *testing.T) {
	w := newWorld(t)
	_, p := compile(t, capped)
	record, envelope := w.send(red, nil, "acme.pay.refund", `{}`, id.AllowWithObligation)
	if got, err := simulate.Replay(nil, record, envelope); err != nil || got.Differences != nil {
		t.Errorf("none active: got %v, %v", got, err)
	}
	if got, err := simulate.Replay(p, record, envelope); err != nil || !slices.Contains(members(got.Differences), "policy.policy_id") {
		t.Errorf("none active, but one given: got %v, %v", got, err)
	}
	record, envelope = w.send(red, nil, "", `{}`, id.Deny)
	if got, err := simulate.Replay(p, record, envelope); err != nil || got.Differences != nil {
		t.Errorf("no tool: got %v, %v", got, err)
	}
	record.Policy.Effective = id.Allow
	if got, err := simulate.Replay(p, record, envelope); err != nil || fmt.Sprint(got.Differences) != "[{policy.effective allow deny}]" {
		t.Errorf("no tool, loosened: got %v, %v", got, err)
	}
	c, _ := compile(t, capped)
	record, envelope = w.send(red, c, "acme.pay.refund", `{"amount":1}`, id.Allow)
	if got, err := simulate.Replay(nil, record, envelope); err != nil || fmt.Sprint(got.Differences) != "[{policy.policy_id spending none}]" {
		t.Errorf("one active, none given: got %v, %v", got, err)
	}
}

// A record from before limits counted events of every kind agrees with its documents by the rule of that time, and the
// result says so.
func TestReplayFormerly(t *testing.T) {
	w := newWorld(t)
	c, p := compile(t, `[{"rule_id":"sum","tool":"acme.pay.*","decision":"deny","limit":{"limit_id":"l","sum":"amount","by":"agent","window_seconds":60,"max":100}}]`)
	w.kind = "made_up"
	record, envelope := w.send(red, c, "acme.pay.refund", `{"amount":70}`, id.Allow)
	if got, err := simulate.Replay(p, record, envelope); err != nil || got.Differences != nil || got.Formerly {
		t.Errorf("counted: got %+v, %v", got, err)
	}
	record.Policy.Limits = nil
	if got, err := simulate.Replay(p, record, envelope); err != nil || got.Differences != nil || !got.Formerly {
		t.Errorf("not counted: got %+v, %v", got, err)
	}
	record.Policy.Effective = id.Deny
	if got, err := simulate.Replay(p, record, envelope); err != nil || fmt.Sprint(members(got.Differences)) != "[policy.limits l]" || got.Formerly {
		t.Errorf("neither: got %+v, %v", got, err)
	}
	w.kind = "tool_call"
	record, envelope = w.send(red, c, "acme.pay.refund", `{"amount":70}`, id.Allow)
	record.Policy.Limits = nil
	if got, err := simulate.Replay(p, record, envelope); err != nil || fmt.Sprint(members(got.Differences)) != "[policy.limits l]" {
		t.Errorf("a call was always counted: got %+v, %v", got, err)
	}
}

// The digest of an event with a subject commits to it and to its standing. A record from before policies could match it is accepted
// unless the policy does.
func TestReplayOfSubjects(t *testing.T) {
	w := newWorld(t)
	usual := `[{"rule_id":"no","tool":"acme.pay.*","decision":"deny"}]`
	about := `[{"rule_id":"own","tool":"acme.pay.*","decision":"deny","on_behalf_of":{"issuer":"https://login.example","verified":true}}]`
	for name, tc := range map[string]struct {
		rules    string
		standing event.Standing
		digest   func(in *policy.Input) // what the recorded digest is of
		want     string
	}{
		"today":               {usual, "", nil, "[]"},
		"verified":            {usual, event.Verified, nil, "[]"},
		"before":              {usual, "", func(in *policy.Input) { in.OnBehalfOf = nil }, "[]"},
		"before, verified":    {usual, event.Verified, func(in *policy.Input) { in.OnBehalfOf, in.Verified = nil, false }, "[]"},
		"claimed as verified": {usual, "", func(in *policy.Input) { in.Verified = true }, "[policy.input_digest]"},
		"verified as claimed": {usual, event.Verified, func(in *policy.Input) { in.Verified = false }, "[policy.input_digest]"},
		"another subject": {usual, "", func(in *policy.Input) {
			in.OnBehalfOf = &event.OnBehalfOf{Issuer: "https://login.example", Subject: "bob"}
		}, "[policy.input_digest]"},
		"a rule about it":             {about, event.Verified, nil, "[]"},
		"a rule about it, claimed":    {about, "", nil, "[]"},
		"a rule about it, not before": {about, event.Verified, func(in *policy.Input) { in.OnBehalfOf, in.Verified = nil, false }, "[policy.input_digest]"},
		"a rule about it, as claimed": {about, event.Verified, func(in *policy.Input) { in.Verified = false }, "[policy.input_digest]"},
	} {
		for _, tenant := range []id.Tenant{red, blue} {
			c, p := compile(t, tc.rules)
			w.of, w.standing = `{"issuer":"https://login.example","subject":"alice"}`, tc.standing
			record, envelope := w.send(tenant, c, "acme.pay.refund", `{"amount":70}`, id.Allow)
			if tc.digest != nil {
				in := policystore.InputOf(envelope, record.OnBehalfOf, record.Policy.EvaluatedAt)
				tc.digest(&in)
				record.Policy.InputDigest = policy.InputDigest(in)
			}
			got, err := simulate.Replay(p, record, envelope)
			if err != nil || fmt.Sprint(members(got.Differences)) != tc.want {
				t.Errorf("%s: got %v, %v, want %s", name, got, err, tc.want)
			}
		}
	}
	// Without an active policy both digests are accepted as well.
	record, envelope := w.send(red, nil, "acme.pay.refund", `{}`, id.Allow)
	in := policystore.InputOf(envelope, "", record.Policy.EvaluatedAt)
	in.OnBehalfOf = nil
	for _, digest := range []id.Hash{record.Policy.InputDigest, policy.InputDigest(in)} {
		record.Policy.InputDigest = digest
		if got, err := simulate.Replay(nil, record, envelope); err != nil || got.Differences != nil {
			t.Errorf("no policy: got %v, %v", got, err)
		}
	}
}

// A simulation judges stored events with the standing in their records.
func TestSimulateSubjects(t *testing.T) {
	w := newWorld(t)
	_, p := compile(t, `[{"rule_id":"own","tool":"acme.**","decision":"deny","on_behalf_of":{"issuer":"https://login.example","verified":true},"when":"on_behalf_of.subject == payload.customer"},
		{"rule_id":"trial","tool":"acme.**","decision":"deny","mode":"shadow","on_behalf_of":{"issuer":"https://login.example"}}]`)
	w.of = `{"issuer":"https://login.example","subject":"alice"}`
	for _, tenant := range []id.Tenant{red, blue, red} {
		w.standing = ""
		w.send(tenant, nil, "acme.pay.refund", `{"customer":"alice"}`, id.Allow)
		w.standing = event.Verified
		w.send(tenant, nil, "acme.pay.refund", `{"customer":"alice"}`, id.Allow)
		w.send(tenant, nil, "acme.pay.refund", `{"customer":"bob"}`, id.Allow)
	}
	w.of, w.standing = "", ""
	w.send(red, nil, "acme.pay.refund", `{"customer":"alice"}`, id.Allow)
	for tenant, want := range map[id.Tenant]string{red: "7 2 map[trial:6]", blue: "3 1 map[trial:3]"} {
		r, err := w.newSimulator().SimulateEvents(t.Context(), tenant, *p, simulate.Range{Last: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%d %d %v", r.Evaluated, r.NowDenied, r.Shadow); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
