package console_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestIngestKeys(t *testing.T) {
	w := newWorld(t)
	bot := w.first[red].Agent
	made := w.call(201, "POST", "/ingest-keys", fmt.Sprintf(
		`{"name":"ci","scopes":["evaluate","events"],"expires_at":"2026-11-21T00:00:00Z","agents":["%s"]}`, bot))
	secret, _ := made["secret"].(string)
	key := made["key"].(map[string]any)
	keyJSON := fmt.Sprintf(`{"key_id":"%s","name":"ci","key_prefix":"%s","scopes":["events","evaluate"],"agents":["%s"],
		"created_at":"2026-11-20T12:00:00.000Z","created_by":"acc_red-owner","expires_at":"2026-11-21T00:00:00.000Z","revoked_at":null,"asks":false,"last_used_at":null}`,
		key["key_id"], key["key_prefix"], bot)
	equal(t, "created", made, fmt.Sprintf(`{"key":%s,"secret":"%s"}`, keyJSON, secret))
	if prefix, _ := key["key_prefix"].(string); prefix == "" || !strings.HasPrefix(secret, prefix) {
		t.Errorf("prefix %q, secret %q", prefix, secret)
	}
	if caller, err := w.orgs.Authenticate(t.Context(), secret); err != nil || caller.Tenant != red {
		t.Errorf("got %+v, %v", caller, err)
	}
	keyJSON = strings.Replace(keyJSON, `"last_used_at":null`, `"last_used_at":"2026-11-20T12:00:00.000Z"`, 1)
	equal(t, "listed", w.call(200, "GET", "/ingest-keys", "", as("red-member")), `{"keys":[`+keyJSON+`],"next":null}`)
	equal(t, "blue", w.call(200, "GET", "/ingest-keys", "", as("blue-owner")), `{"keys":[],"next":null}`)

	path := "/ingest-keys/" + key["key_id"].(string)
	equal(t, "alone", w.call(200, "GET", path, "", as("red-member")), keyJSON)
	w.refuses("blue reads", w.request("GET", path, "", as("blue-owner")), 404, "Not found")
	w.refuses("unknown one", w.request("GET", "/ingest-keys/nothing", ""), 404, "Not found")
	equal(t, "renamed", w.call(200, "PATCH", path, `{"name":"pipeline"}`), strings.Replace(keyJSON, `"ci"`, `"pipeline"`, 1))
	w.refuses("blue renames", w.request("PATCH", path, `{"name":"x"}`, as("blue-owner")), 404, "Not found")
	w.refuses("asks", w.request("PATCH", path, `{"asks":true}`), 422, "asks requires the scopes evaluate and approvals")
	w.refuses("empty name", w.request("PATCH", path, `{"name":""}`), 422, "name must have 1 to 200 characters")
	w.refuses("blue revokes", w.request("DELETE", path, "", as("blue-owner")), 404, "Not found")
	w.call(204, "DELETE", path, "")
	w.refuses("renamed when it is over", w.request("PATCH", path, `{"name":"x"}`), 409, "The ingest key is revoked")
	if got := w.call(200, "GET", path, "")["revoked_at"]; got != "2026-11-20T12:00:00.000Z" {
		t.Errorf("got revoked_at %v", got)
	}
	if _, err := w.orgs.Authenticate(t.Context(), secret); err == nil {
		t.Error("the revoked key is still valid")
	}
	w.refuses("unknown", w.request("DELETE", "/ingest-keys/nothing", ""), 404, "Not found")
	want := []string{"ledger_ingest_key_created by acc_red-owner", "ledger_ingest_key_changed by acc_red-owner", "ledger_ingest_key_revoked by acc_red-owner"}
	if got := w.kinds(red); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestIngestKeysRefuse(t *testing.T) {
	const scopes = "scopes must be some of events, evaluate, approvals and workflows"
	const future = "expires_at must be in the future"
	w := newWorld(t)
	for name, tc := range map[string]struct{ body, message string }{
		"no scopes":     {`{"name":"n","scopes":[]}`, scopes},
		"unknown scope": {`{"name":"n","scopes":["admin"]}`, scopes},
		"past":          {`{"name":"n","expires_at":"2026-11-20T11:59:59Z"}`, future},
		"the epoch":     {`{"name":"n","expires_at":"1970-01-01T00:00:00Z"}`, future},
		"before it":     {`{"name":"n","expires_at":"1969-01-01T00:00:00Z"}`, future},
		"not a time":    {`{"name":"n","expires_at":"tomorrow"}`, `Member "expires_at" has another type or form`},
	} {
		w.refuses(name, w.request("POST", "/ingest-keys", tc.body), 422, tc.message)
	}
	w.refuses("unknown after", w.request("GET", "/ingest-keys?after=k", ""), 422, "after is not an ingest key of the organization")
	all := w.call(201, "POST", "/ingest-keys", `{"name":"n","scopes":null,"expires_at":null,"agents":null}`)["key"].(map[string]any)
	if got := fmt.Sprint(all["scopes"], all["agents"], all["expires_at"]); got != "[events evaluate approvals workflows] [] <nil>" {
		t.Errorf("got %s", got)
	}
}

func TestOrganization(t *testing.T) {
	w := newWorld(t)
	equal(t, "usage", w.call(200, "GET", "/organization/plan-usage", "", as("red-member")),
		`{"plan":"free","events_this_month":0,"events_per_month":10000,"month":"2026-11","resets_at":"2026-12-01T00:00:00.000Z","limits":{
			"events_per_month":{"used":0,"limit":10000},"agents":{"used":1,"limit":20},
			"keys_per_agent":{"used":null,"limit":1000},"active_keys_per_agent":{"used":null,"limit":100},
			"ingest_keys":{"used":0,"limit":20},"policies":{"used":0,"limit":20},"policy_versions":{"used":null,"limit":100},
			"statements_per_minute":{"used":0,"limit":60}}}`)
	view := func(slug, number, name, disclosure string, selfReview bool) string {
		organization := "00000000-0000-0000-0000-00000000000" + number
		return fmt.Sprintf(`{"organization_id":"%s","slug":"%s","name":"%s","origin":"log.example/o/%s","plan":"free","active":true,
			"disclosure":"%s","self_review":%v,"two_person_policy":false,"publish_policies":false,"sign_in":{"require":null},"retention_days":0,"legal_hold":false,"vote_hold_hours":0,"signed_votes":"optional","columns_in_mail":false,"created_at":"2026-11-20T12:00:00.000Z"}`, organization, slug, name, organization, disclosure, selfReview)
	}
	equal(t, "changed", w.call(200, "PATCH", "/organization", `{"disclosure":"full","name":"Red Inc.","self_review":true}`, as("red-admin")),
		view("red", "b", "Red Inc.", "full", true))
	equal(t, "as it is", w.call(200, "PATCH", "/organization", `{"name":"Red Inc.","disclosure":null}`), view("red", "b", "Red Inc.", "full", true))
	read := func(slug, role string) (organization map[string]any, permissions string) {
		organization = w.call(200, "GET", "/organization", "", as(slug+"-"+role))
		permissions = fmt.Sprint(organization["permissions"])
		delete(organization, "permissions")
		return organization, permissions
	}
	asMember, may := read("red", "member")
	equal(t, "read", asMember, view("red", "b", "Red Inc.", "full", true))
	if want := "[read use tokens]"; may != want {
		t.Errorf("a member may: got %s, want %s", may, want)
	}
	asOwner, may := read("blue", "owner")
	equal(t, "blue reads", asOwner, view("blue", "c", "blue", "record", false))
	if !strings.Contains(may, "edit policies") || !strings.Contains(may, "own") {
		t.Errorf("an owner may: got %s", may)
	}
	equal(t, "blue", w.call(200, "PATCH", "/organization", `{}`, as("blue-owner")), view("blue", "c", "blue", "record", false))
	if got, want := w.kinds(red), []string{"ledger_settings_changed by acc_red-admin"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	w.refuses("disclosure", w.request("PATCH", "/organization", `{"disclosure":"all"}`), 422, `Member "disclosure" has another type or form`)
	for _, member := range []string{"plan", "active", "limits", "slug"} {
		w.refuses(member, w.request("PATCH", "/organization", `{"`+member+`":1}`), 422, fmt.Sprintf("Member %q is not known", member))
	}
}
