package identity_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

func TestListOrganizations(t *testing.T) {
	w := newWorld(t)
	list := func(query string) (slugs []string, next string) {
		t.Helper()
		var body struct {
			Organizations []struct {
				Slug string `json:"slug"`
			} `json:"organizations"`
			Next *string `json:"next"`
		}
		if err := json.Unmarshal(w.platform("GET", organizations+query, "").Body.Bytes(), &body); err != nil {
			t.Fatal(err)
		}
		for _, o := range body.Organizations {
			slugs = append(slugs, o.Slug)
		}
		if body.Next != nil {
			next = *body.Next
		}
		return slugs, next
	}
	if slugs, next := list(""); len(slugs) != 0 || next != "" {
		t.Errorf("none: got %v, %q", slugs, next)
	}
	red, blue := w.organization("red"), w.organization("blue")
	claim := storage.Change{Kind: "org_slug", Key: "claimed", Value: []byte(`{"tenant":999}`)}
	if err := w.Store.Write(t.Context(), id.Service, []storage.Change{claim}); err != nil {
		t.Fatal(err)
	}
	w.platform("PATCH", organizations+"/"+red.OrganizationID, `{"active":false,"limits":{"events_per_month":7}}`)
	item := func(m made, active bool, cap string) string {
		return fmt.Sprintf(`{"organization_id":"%s","slug":"%s","name":"%s","plan":"enterprise","active":%v,"usage":`+
			`{"month":"2026-11","events_this_month":0,"events_per_month":%s,"resets_at":"2026-12-01T00:00:00.000Z","ingest_keys":1}}`,
			m.OrganizationID, m.Slug, strings.ToUpper(m.Slug), active, cap)
	}
	var got, want any
	w.decode(w.platform("GET", organizations, ""), 200, &got)
	text := `{"organizations":[` + item(blue, true, "null") + "," + item(red, false, "7") + `],"next":null}`
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if slugs, next := list("?limit=1"); fmt.Sprint(slugs) != "[blue]" || next != "blue" {
		t.Errorf("first page: got %v, %q", slugs, next)
	}
	if slugs, next := list("?limit=1&after=blue"); fmt.Sprint(slugs) != "[red]" || next != "" {
		t.Errorf("second page: got %v, %q", slugs, next)
	}
	if a := w.platform("GET", organizations+"?limit=0", ""); a.Code != 422 || !strings.Contains(a.Body.String(), "limit must be from 1 to 1000") {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	if a := w.call("GET", organizations, ""); a.Code != 401 || !strings.Contains(a.Body.String(), "Invalid platform secret") {
		t.Errorf("without the secret: got %d %s", a.Code, a.Body)
	}
}

// The operator reads one organization by id or slug, with its own limits and settings.
func TestReadOrganization(t *testing.T) {
	w := newWorld(t)
	red, blue := w.organization("red"), w.organization("blue")
	w.platform("PATCH", organizations+"/red", `{"active":false,"limits":{"agents":7}}`)
	type shown struct {
		OrganizationID string `json:"organization_id"`
		Slug           string `json:"slug"`
		Active         bool   `json:"active"`
		Origin         string `json:"origin"`
		Disclosure     string `json:"disclosure"`
		CreatedAt      string `json:"created_at"`
		Limits         struct {
			Agents   *int `json:"agents"`
			Policies *int `json:"policies"`
		} `json:"limits"`
	}
	read := func(name string, into *shown) {
		t.Helper()
		answer := w.platform("GET", organizations+"/"+name, "")
		if err := json.Unmarshal(answer.Body.Bytes(), into); err != nil || answer.Code != 200 {
			t.Errorf("%s: got %d %s, %v", name, answer.Code, answer.Body, err)
		}
	}
	for _, name := range []string{"red", red.OrganizationID, strings.ToUpper(red.OrganizationID)} {
		var got shown
		read(name, &got)
		if got.OrganizationID != red.OrganizationID || got.Slug != "red" || got.Active || got.Disclosure != "record" ||
			!strings.HasSuffix(got.Origin, "/o/"+red.OrganizationID) || got.CreatedAt == "" ||
			got.Limits.Agents == nil || *got.Limits.Agents != 7 || got.Limits.Policies != nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	var other shown
	read("blue", &other)
	if other.OrganizationID != blue.OrganizationID || !other.Active || other.Limits.Agents != nil {
		t.Errorf("blue: got %+v", other)
	}
	for _, name := range []string{"green", "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11"} {
		answers(t, name, w.platform("GET", organizations+"/"+name, ""), 404, refusal("Not found"))
	}
	if a := w.call("GET", organizations+"/red", ""); a.Code != 401 || !strings.Contains(a.Body.String(), "Invalid platform secret") {
		t.Errorf("without the secret: got %d %s", a.Code, a.Body)
	}
}
