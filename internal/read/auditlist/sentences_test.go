package auditlist

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// constants returns the names of the constants of a type in a file.
func constants(t *testing.T, file, typeName string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if of, ok := spec.Type.(*ast.Ident); ok && of.Name == typeName {
				names = append(names, spec.Names[0].Name)
			}
		}
		return true
	})
	return names
}

// keys returns the names of package sysevent that are the whole key of a table entry in a file.
func keys(t *testing.T, file string) map[string]bool {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]bool)
	ast.Inspect(parsed, func(n ast.Node) bool {
		if pair, ok := n.(*ast.KeyValueExpr); ok {
			if name, ok := pair.Key.(*ast.SelectorExpr); ok {
				found[name.Sel.Name] = true
			}
		}
		return true
	})
	return found
}

// Each kind of event that the server can write has a sentence.
func TestEveryKindHasASentence(t *testing.T) {
	known := keys(t, "sentences.go")
	kinds := constants(t, "../../sysevent/sysevent.go", "Kind")
	if len(kinds) < 30 {
		t.Fatalf("got %v", kinds)
	}
	for _, name := range kinds {
		if !known[name] {
			t.Errorf("sysevent.%s has no sentence: add it to sentences.go", name)
		}
	}
}

// people has one account.
type people struct{}

func (people) ByID(_ context.Context, who account.ID) (account.Account, error) {
	if who != "acc_1" {
		return account.Account{}, fault.New(fault.NotFound, "Not found")
	}
	return account.Account{ID: who, DisplayName: "Ann Lee", Email: "ann@example.com"}, nil
}

// sentenceOf writes the sentence of an act of acc_1.
func sentenceOf(t *testing.T, kind, payload string) string {
	t.Helper()
	d := &describer{Reader: &Reader{People: people{}}, names: map[account.ID]name{}}
	actor, err := d.describeActor(t.Context(), "acc_1")
	if err != nil {
		t.Fatal(err)
	}
	act := &act{kind: kind, actor: actor}
	if payload != "" {
		act.payload = jsontext.Value(payload)
	}
	text, change, err := d.write(t.Context(), act)
	if err != nil || change != text {
		t.Fatalf("got %q, %q without its source, %v", text, change, err)
	}
	return text
}

// A sentence ends with the source of the change, and the change alone does not name it.
func TestWriteSource(t *testing.T) {
	d := &describer{Reader: &Reader{People: people{}}, names: map[account.ID]name{}}
	actor, err := d.describeActor(t.Context(), "acc_1")
	if err != nil {
		t.Fatal(err)
	}
	source := &sysevent.Source{Address: netip.MustParseAddr("192.0.2.1"), Credential: sysevent.BySession, ID: "ses_1"}
	for payload, want := range map[string]string{
		`{"names":["name"]}`:              "Ann Lee (ann@example.com) changed settings: name| from 192.0.2.1 with session ses_1.",
		`{"names":["name","disclosure"]}`: "Ann Lee (ann@example.com) changed settings: name, disclosure|, from 192.0.2.1 with session ses_1.",
	} {
		text, change, err := d.write(t.Context(), &act{kind: "ledger_settings_changed", actor: actor, payload: jsontext.Value(payload), source: source})
		whole, short, _ := strings.Cut(want, "|")
		if err != nil || text != whole+short || change != whole+"." {
			t.Errorf("got %q, %q, %v", text, change, err)
		}
	}
}

// If all members are present, the sentence contains each of them. With an empty payload, it contains no placeholder.
func TestSentencesUseTheirMembers(t *testing.T) {
	places := regexp.MustCompile(`{([a-z_]+)}`)
	for key, text := range sentences() {
		kind, transition, _ := strings.Cut(key, " ")
		members := map[string]string{}
		for _, place := range places.FindAllStringSubmatch(string(text), -1) {
			members[place[1]] = "value of " + place[1]
		}
		if transition != "" || members["transition"] != "" {
			members["transition"] = transition
		}
		payload, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		full := sentenceOf(t, kind, string(payload))
		for member, value := range members {
			if member != "who" && member != "transition" && !strings.Contains(full, value) {
				t.Errorf("%s: got %q without %s", key, full, member)
			}
		}
		for _, got := range []string{full, sentenceOf(t, kind, "{}")} {
			if strings.ContainsAny(got, "{}[]") || !strings.HasSuffix(got, ".") || strings.Contains(got, "  ") {
				t.Errorf("%s: got %q", key, got)
			}
		}
	}
}

func TestWrite(t *testing.T) {
	const ann = "Ann Lee (ann@example.com)"
	for _, c := range []struct{ kind, payload, want string }{
		{"ledger_policy_activated", `{"policy_id":"p_1","policy_version":3}`, ann + " activated policy p_1 version 3."},
		{"ledger_run", `{"run_id":"run_1","transition":"started","workflow":{"name":"Invoices","version":"7"},"agent_id":"a"}`,
			ann + " started run run_1 of workflow Invoices by agent a."},
		{"ledger_webhook_changed", `{"transition":"callback_key_rotated","signing_key_id":"whk_1"}`,
			ann + " rotated the key that signs callbacks, the new key is whk_1."},
		{"ledger_webhook_created", `{"endpoint_id":"whe_1","name":"Alerts {who}"}`, ann + " created webhook Alerts {who}."},
		{"ledger_webhook_created", `{"endpoint_id":"whe_1","name":""}`, ann + " created webhook whe_1."},
		{"ledger_webhook_changed", `{"endpoint_id":"whe_1","name":"Alerts","names":["url"]}`, ann + " changed webhook Alerts: url."},
		{"ledger_webhook_deleted", `{"endpoint_id":"whe_1"}`, ann + " deleted webhook whe_1."},
		{"ledger_webhook_disabled", `{"endpoint_id":"whe_1","name":"Alerts","reason":"gone"}`, "The service disabled webhook Alerts, because: gone."},
		{"ledger_settings_changed", `{"names":["name","disclosure"]}`, ann + " changed settings: name, disclosure."},
		{"ledger_key_revoked", `{"key_id":"k","agent_id":"a","compromised_from":null,"reason":""}`, ann + " revoked key k of agent a."},
		{"ledger_key_revoked", `{"key_id":"k","agent_id":"a","compromised_from":0,"reason":"lost {who} [x]"}`,
			ann + " revoked key k of agent a, not to be trusted from log index 0 on, because: lost {who} [x]."},
		{"ledger_member_added", `{"account_id":"acc_1","role":"auditor","invited_by":"acc_2","invitation_id":"inv_1"}`,
			ann + " became a member with role auditor, by invitation of account acc_2."},
		{"ledger_approval", `{"approval_id":"apr_1","transition":"voted","vote":"approve"}`, ann + " voted approve on approval apr_1."},
		{"ledger_approval", `{"approval_id":"apr_1","transition":"expired"}`, "Approval apr_1 expired."},
		{"ledger_envelope_erased", `{"ranges":[[0,5],[9,10]],"reason":"request"}`,
			ann + " erased the envelopes at log indices 0 to below 5, 9 to below 10, for reason request."},
		{"ledger_of_tomorrow", `{}`, ann + " made a change of kind ledger_of_tomorrow."},
		{"ledger_approval", "", ann + " made a change of kind ledger_approval whose envelope is erased."},
	} {
		if got := sentenceOf(t, c.kind, c.payload); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.kind, c.payload, got, c.want)
		}
	}
}
