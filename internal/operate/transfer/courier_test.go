package transfer_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/internal/operate/recordcheck"
	"github.com/agentledger/agentledger/internal/operate/rekey"
	"github.com/agentledger/agentledger/internal/operate/transfer"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/storage"
)

// furnished returns an export of an organization with records of most kinds.
func furnished(t *testing.T) (here *house, red *resident, dir string) {
	t.Helper()
	here = newHouse(t, model(t), newKeyring(t))
	here.start()
	red = here.found("red", "ann@example.com", 3)
	red.live(14)
	red.furnish(t, &collected{t: t})
	here.stop()
	dir = filepath.Join(t.TempDir(), "export")
	here.export(dir, "red")
	return here, red, dir
}

// recordPieces returns the pieces of an export that contain records.
func recordPieces(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*", "[rs]e*.ndjson")) // records and service
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	return all
}

// line is one line in a piece of records.
type recordText struct {
	Kind        storage.Kind    `json:"kind"`
	Key         string          `json:"key"`
	KeyBase64   *string         `json:"key_base64,omitempty"`
	Version     json.Number     `json:"version"`
	Value       json.RawMessage `json:"value,omitempty"`
	ValueBase64 *string         `json:"value_base64,omitempty"`
}

// editKind changes the first record of a kind in a piece. If there is none, it inserts one where it belongs. It reports
// whether there was one.
func editKind(t *testing.T, path string, kind storage.Kind, edit func(*recordText)) (found bool) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	at := len(lines) - 1
	r := recordText{Kind: kind, Key: "courier", Version: "1", Value: json.RawMessage("{}")}
	for i, line := range lines[1 : len(lines)-1] {
		var have recordText
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&have); err != nil {
			t.Fatal(err)
		}
		if have.Kind >= kind {
			at, found = i+1, have.Kind == kind
			if found {
				r = have
			}
			break
		}
	}
	edit(&r)
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		t.Fatal(err)
	}
	end := at
	if found {
		end++
	}
	lines = slices.Replace(lines, at, end, strings.TrimSpace(text.String()))
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return found
}

// touched changes a record such that it can still be decoded.
func touched(r *recordText) { r.Version += "1" }

// unreadable replaces the value by JSON that no owner can decode.
func unreadable(r *recordText) {
	text := base64.StdEncoding.EncodeToString([]byte(`["courier"]`))
	r.Value, r.ValueBase64 = nil, &text
}

// withCounter adds a number that no genuine record has.
func withCounter(r *recordText) {
	var members map[string]json.RawMessage
	if json.Unmarshal(r.Value, &members) != nil { // not a JSON object: another edit covers it
		unreadable(r)
		return
	}
	members["counter"] = json.RawMessage("1152921504606846976")
	r.Value, _ = json.Marshal(members)
}

// A carrier of an export can neither edit a record of any kind in it nor add one: the import refuses the export and
// writes nothing. A new kind of record is edited here as soon as the table of kinds has it.
func TestCourierEditsExport(t *testing.T) {
	here, _, dir := furnished(t)
	pristine := files(t, dir)
	own, service := map[fate]bool{moves: true, ofLog: true}, map[fate]bool{entry: true, repeated: true}
	edited := 0
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		f := kinds[kind].fate
		if !own[f] && !service[f] {
			continue // no export has such records (TestEveryKindIsNamed)
		}
		name := "records.ndjson"
		if service[f] {
			name = "service.ndjson"
		}
		attempt := func(edit func(*recordText)) (broken string, found bool) {
			broken = filepath.Join(t.TempDir(), "export")
			restore(t, broken, pristine)
			for _, path := range recordPieces(t, broken) {
				if filepath.Base(path) == name {
					found = editKind(t, path, kind, edit)
				}
			}
			resum(t, broken)
			return broken, found
		}
		broken, found := attempt(touched)
		there := newHouse(t, model(t), here.keyring)
		_, checked := there.checkExport(broken, "")
		_, imported := there.tryImport(broken, "")
		if !errors.Is(checked, transfer.ErrUnauthenticated) || !errors.Is(imported, transfer.ErrUnauthenticated) {
			t.Errorf("%s, edited: check: got %v; import: got %v", kind, checked, imported)
		}
		if found {
			edited++
		}
		// With --unauthenticated, each owner still decodes its records before anything is written.
		for what, edit := range map[string]func(*recordText){
			"unreadable":             unreadable,
			"version 2^64-1":         func(r *recordText) { r.Version = "18446744073709551615" },
			"version 0":              func(r *recordText) { r.Version = "0" },
			"of an unknown kind":     func(r *recordText) { r.Kind += "0" },
			"with a counter of 2^60": withCounter,
		} {
			broken, _ := attempt(edit)
			there := newHouse(t, model(t), here.keyring)
			i := &transfer.Importer{Place: there.place(there.openAnchors()), Dir: broken, Sealed: rekey.SealedRecords(), Unauthenticated: true}
			if _, err := i.Run(t.Context(), ""); !errors.Is(err, transfer.ErrDamaged) || strings.Contains(err.Error(), "courier\"]") {
				t.Errorf("%s, %s: got %v", kind, what, err)
			}
			if tenants := collect(t, there.engine.Tenants(t.Context())); len(tenants) > 0 || len(serviceRecords(t, there.engine)) > 0 {
				t.Errorf("%s, %s: something was written: %v", kind, what, tenants)
			}
		}
	}
	if edited < 30 {
		t.Errorf("only %d kinds were in the export: furnish it", edited)
	}
}

// editAll changes the JSON values of all records of a kind in the organization's partition. If edit returns false, the
// record is removed.
func editAll(t *testing.T, path string, kind storage.Kind, edit func(value map[string]any) bool) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	var made []string
	changed := false
	for _, line := range lines {
		var r recordText
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if r.Kind != kind {
			made = append(made, line)
			continue
		}
		var value map[string]any
		d = json.NewDecoder(bytes.NewReader(r.Value))
		d.UseNumber()
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		if changed = true; !edit(value) {
			continue
		}
		r.Value = mustJSON(value)
		made = append(made, string(mustJSON(r)))
	}
	if !changed {
		t.Fatalf("there is no %s", kind)
	}
	if err := os.WriteFile(path, []byte(strings.Join(made, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Records that contradict the log are named before anything is written by an import that skips the authenticators,
// and by the comparison of a store.
func TestRecordsThatContradictTheLog(t *testing.T) {
	here := newHouse(t, model(t), newKeyring(t))
	here.start()
	red := here.found("red", "ann@example.com", 1)
	red.send(3)
	ann := &account.Session{Account: red.Membership.Account}
	sent, err := here.members().Invite(t.Context(), red.Tenant, ann, "bob@example.com", account.Approver)
	if err != nil {
		t.Fatal(err)
	}
	bob := here.join(red.Tenant, "bob@example.com", sent)
	suspended, inactive, name := true, false, "Another name"
	key, _, err := here.orgs.CreateIngestKey(t.Context(), red.Tenant, "acc_x", org.WantedKey{Name: "ci"})
	steps := []func() error{
		func() error { return err },
		red.activate, red.revoke,
		func() error {
			_, err := here.members().Change(t.Context(), red.Tenant, ann, bob.ID, member.Change{Suspended: &suspended})
			return err
		},
		func() error {
			_, err := here.orgs.Change(t.Context(), red.Tenant, "acc_x", org.Patch{Name: &name})
			return err
		},
		func() error {
			_, made, err := here.agents.CreateAgent(t.Context(), red.Tenant, "acc_x", agent.Wanted{DisplayName: "worker"})
			if err == nil {
				_, err = here.agents.Change(t.Context(), red.Tenant, "acc_x", made.Agent, agent.Patch{Active: &inactive})
			}
			return err
		},
		func() error { return here.orgs.RevokeIngestKey(t.Context(), red.Tenant, "acc_x", key.ID) },
		func() error {
			here.registerVoter(red.Tenant, ann.Account, here.registerVoter(red.Tenant, ann.Account, nil))
			return nil
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	here.stop()
	dir := filepath.Join(t.TempDir(), "export")
	here.export(dir, "")
	pristine := files(t, dir)
	set := func(name string, to any) func(map[string]any) bool {
		return func(v map[string]any) bool { v[name] = to; return true }
	}
	gone := func(map[string]any) bool { return false }
	thief := did.Multikey(edkey.NewPrivate().Public().Bytes())
	for name, tt := range map[string]struct {
		kind storage.Kind
		edit func(map[string]any) bool
		want string
	}{
		"public key of the agent, which only its events state": {"agent_key", set("public_key", thief), "agent_key/" + string(red.Agent.Agent) + "/" + string(red.Agent.Key) + ": the record differs from event"},
		"a revoked key is active":                              {"agent_key", set("status", "active"), "/status: the record differs from event"},
		"a compromise begins later":                            {"agent_key", set("compromised_from", 1000), "/compromised_from: the record differs from event"},
		"a key is gone":                                        {"agent_key", gone, "states is missing"},
		"an inactive agent is active":                          {"agent", set("inactive", false), "/inactive: the record differs from event"},
		"the name of an agent":                                 {"agent", set("display_name", "other"), "/name: the record differs from event"},
		"no policy is active":                                  {"policy_active", gone, "policy: the record that event"},
		"another version is active":                            {"policy_active", set("version", 7), "policy: the record differs from event"},
		"the text of a policy": {"policy_version", func(v map[string]any) bool {
			v["document"].(map[string]any)["rules"] = []any{}
			return true
		}, "the record differs from event"},
		"the role of a member":    {"membership", set("role", "owner"), "member/" + string(bob.Account) + "/role: the record differs from event"},
		"a suspended member acts": {"membership", set("suspended", false), "/suspended: the record differs from event"},
		"a setting":               {"org", set("self_review", true), "settings: the record differs from event"},
		"a revoked ingest key":    {"ingest_key", set("revoked_at", nil), "/revoked: the record differs from event"},
		"the public key of a voter": {"voter_key", set("public_key", map[string]any{"crv": "Ed25519", "kty": "OKP",
			"x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}), "voter_key/" + string(ann.Account)},
		"the page of a voter key":         {"voter_key", set("web_origin", "https://evil.example"), "/web_origin: the record differs from event"},
		"the relying party of a key":      {"voter_key", set("rp_id", "evil.example"), "/rp_id: the record differs from event"},
		"a registration that looks older": {"voter_key", set("registered_at", "2025-10-20T12:00:00.000Z"), "/registered_at: the record differs from event"},
		"nobody consented to a voter key": {"voter_key", set("consent_by", ""), "/consent_by: the record differs from event"},
		"a voter key of another log":      {"voter_key", set("log", "log.example/o/another"), "states is missing"},
		"a voter key is gone":             {"voter_key", gone, "states is missing"},
		"the scopes of a key":             {"ingest_key", set("scopes", []any{"evaluate"}), "/scopes: the record differs from event"},
	} {
		t.Run(name, func(t *testing.T) {
			broken := filepath.Join(t.TempDir(), "export")
			restore(t, broken, pristine)
			editAll(t, filepath.Join(broken, red.State.Identity().Organization.String(), "records.ndjson"), tt.kind, tt.edit)
			resum(t, broken)
			there := newHouse(t, model(t), here.keyring)
			i := &transfer.Importer{Place: there.place(there.openAnchors()), Dir: broken, Sealed: rekey.SealedRecords(), Unauthenticated: true}
			_, err := i.Run(t.Context(), "")
			if !errors.Is(err, transfer.ErrDamaged) || !strings.Contains(err.Error(), "contradict the log") {
				t.Errorf("got %v", err)
			}
			if tenants := collect(t, there.engine.Tenants(t.Context())); len(tenants) > 0 {
				t.Errorf("something was written: %v", tenants)
			}
			// The same in a store: the records are named.
			there = newHouse(t, model(t), here.keyring)
			there.imports(dir, "")
			for r, err := range storage.PartitionOf(t.Context(), there.engine, red.Tenant) {
				if err != nil {
					t.Fatal(err)
				}
				if r.Kind != tt.kind {
					continue
				}
				var value map[string]any
				if err := json.Unmarshal(r.Value, &value); err != nil {
					t.Fatal(err)
				}
				change := storage.Change{Kind: r.Kind, Key: r.Key, If: r.Version}
				if tt.edit(value) {
					change.Value = mustJSON(value)
				}
				if err := there.engine.Write(t.Context(), red.Tenant, []storage.Change{change}); err != nil {
					t.Fatal(err)
				}
			}
			var stated recordcheck.Statements
			found, err := stated.CompareStore(t.Context(), there.engine, red.State.Identity())
			if text := fmt.Sprint(found); err != nil || !strings.Contains(text, tt.want) {
				t.Errorf("got %v, %v, want %s", text, err, tt.want)
			}
		})
	}
	var stated recordcheck.Statements
	if found, err := stated.CompareStore(t.Context(), here.engine, red.State.Identity()); err != nil || len(found) > 0 {
		t.Errorf("as they are: got %v, %v", found, err)
	}
}
