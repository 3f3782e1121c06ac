package identity_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/identity"
)

const orgs = "/v1/id/orgs"

func TestSignup(t *testing.T) {
	w := newWorld(t, func(o *identity.Options) { o.Signup = true })
	red := w.team("red")
	bob := red.join("bob", "member")
	before := bob.cookie
	red.refuses("bob", "POST", orgs, `{"name":"Own","slug":"own"}`, 403, "address_unproved", addressUnproved)
	w.prove(bob.email)
	answer := w.call("POST", orgs, `{"name":"Own","slug":"own"}`, "Cookie", before)
	var made struct {
		signedIn
		Origin    string         `json:"origin"`
		LogKey    string         `json:"log_key"`
		Agent     map[string]any `json:"agent"`
		IngestKey map[string]any `json:"ingest_key"`
	}
	w.decode(answer, 201, &made)
	if made.Organization.Slug != "own" || made.User.Role != "owner" || made.Account.AccountID != bob.account || len(made.Organizations) != 2 ||
		made.Origin == "" || made.LogKey == "" || made.Agent["private_key_b64"] == "" || made.IngestKey["secret"] == "" || !made.MayFound {
		t.Errorf("got %+v", made)
	}
	red.refuses("bob", "GET", me, "", 401, "", "Not signed in") // with the older token
	bob.cookie = w.cookie(answer)
	red.refuses("bob", "GET", red.path+"/members", "", 404, "", "Not found")
	own := orgs + "/" + made.Organization.OrganizationID
	if listed := red.must(200, "bob", "GET", own+"/members", "")["members"].([]any); len(listed) != 1 {
		t.Errorf("got %v", listed)
	}
	red.refuses("ann", "GET", own+"/members", "", 404, "", "Not found")

	red.refuses("bob", "POST", orgs, `{"name":"Own","slug":"own"}`, 409, "", "slug is taken")
	red.refuses("bob", "POST", orgs, `{"name":"Own","slug":"o"}`, 422, "", "slug must be 3 to 63 of a-z, 0-9 and single hyphens inside, and not a UUID")
	red.refuses("", "POST", orgs, `{"name":"Own","slug":"other"}`, 401, "", "Not signed in")
	if g := w.call("POST", orgs, `{"name":"Own","slug":"other"}`, "Cookie", bob.cookie, "Sec-Fetch-Site", "cross-site"); g.Code != 403 {
		t.Errorf("another site: got %d %s", g.Code, g.Body)
	}
}

func TestSignupIsOff(t *testing.T) {
	red := newWorld(t).team("red")
	red.refuses("ann", "POST", orgs, `{"name":"Own","slug":"own"}`, 403, "", "Only the operator can create organizations here")
}

// A person can create only so many organizations, also by concurrent calls.
func TestBoundOfOwnedOrganizations(t *testing.T) {
	w := newWorld(t, func(o *identity.Options) { o.Signup = true })
	red := w.team("red")
	cookies := make([]string, 12)
	for i := range cookies {
		cookies[i] = red.enter("ann", email).cookie
	}
	var made, refused int
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, cookie := range cookies {
		all.Go(func() {
			g := w.call("POST", orgs, fmt.Sprintf(`{"name":"Own","slug":"own-%d"}`, i), "Cookie", cookie)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case g.Code == 201:
				made++
			case g.Code == 409 && g.Body.String() == `{"error":"You own 10 organizations, the most that a person can create","code":"organization_limit"}`:
				refused++
			default:
				t.Errorf("got %d %s", g.Code, g.Body)
			}
		})
	}
	all.Wait()
	if made != 9 || refused != 3 {
		t.Errorf("got %d made and %d refused", made, refused)
	}
}
