package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

func TestGrantVerify(t *testing.T) {
	const origin = "log.example/o/8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11"
	organization, err := id.ParseOrganization("8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11")
	if err != nil {
		t.Fatal(err)
	}
	action := grant.Action{Organization: organization, Agent: "billing-bot", Tool: "acme.refund", Payload: []byte(`{"amount":7}`)}.Digest()
	key, err := tlog.NewSignerKey(grant.KeyName(origin), edkey.NewPrivate())
	if err != nil {
		t.Fatal(err)
	}
	other, err := tlog.NewSignerKey(grant.KeyName(origin), edkey.NewPrivate())
	if err != nil {
		t.Fatal(err)
	}
	begin, err := id.ParseInstant("2026-11-21T10:00:00.000Z")
	if err != nil {
		t.Fatal(err)
	}
	note, err := grant.Sign(grant.Grant{
		Origin: origin, Approval: "apr_1", Agent: "billing-bot", ActionDigest: action, NotBefore: begin, NotAfter: begin + grant.Life,
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, payload := filepath.Join(dir, "grant"), filepath.Join(dir, "payload")
	for name, text := range map[string]string{file: string(note), payload: "{ \"amount\" : 7 }\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"good by its digest": {[]string{"--key", key.Verifier().String(), "--action", action.String(), "--at", "2026-11-21T10:04:59.999Z"}, 0, "good: approval apr_1 lets billing-bot do this"},
		"good by its action": {[]string{"--key", key.Verifier().String(), "--org", organization.String(), "--agent", "billing-bot", "--tool", "acme.refund", "--payload", payload, "--at", "2026-11-21T10:00:00.000Z"}, 0, "good: "},
		"another tool":       {[]string{"--key", key.Verifier().String(), "--org", organization.String(), "--agent", "billing-bot", "--tool", "acme.refunds", "--payload", payload, "--at", "2026-11-21T10:00:00.000Z"}, 1, "verify grant: the grant is for another action"},
		"over":               {[]string{"--key", key.Verifier().String(), "--action", action.String(), "--at", "2026-11-21T10:05:00.000Z"}, 1, "verify grant: the grant has expired"},
		"too early":          {[]string{"--key", key.Verifier().String(), "--action", action.String(), "--at", "2026-11-21T09:59:59.999Z"}, 1, "verify grant: the grant is not valid yet"},
		"another key":        {[]string{"--key", other.Verifier().String(), "--action", action.String(), "--at", "2026-11-21T10:00:00.000Z"}, 1, "verify grant: open grant"},
		"no action":          {[]string{"--key", key.Verifier().String()}, 2, "no action: set --action"},
		"no key":             {[]string{"--action", action.String()}, 2, "--key"},
		"bad time":           {[]string{"--key", key.Verifier().String(), "--action", action.String(), "--at", "now"}, 2, "--at"},
	} {
		got := aps(t, "", append([]string{"grant", "verify", file}, tt.args...)...)
		if got.status != tt.status || !strings.Contains(got.out+got.report, tt.want) {
			t.Errorf("%s: got %+v, want status %d and %q", name, got, tt.status, tt.want)
		}
	}
	asJSON := aps(t, "", "grant", "verify", file, "--json", "--key", key.Verifier().String(), "--action", action.String(), "--at", "2026-11-21T11:00:00.000Z")
	if asJSON.status != 1 || !strings.Contains(asJSON.out, `"ok":false,"error":"the grant has expired"`) {
		t.Errorf("in JSON: got %+v", asJSON)
	}
}
