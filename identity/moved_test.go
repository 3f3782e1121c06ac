package identity_test

import (
	"net/http"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

// newMovingTeam returns a team whose organization moves, with a second organization beside it.
func newMovingTeam(t *testing.T) (*team, *ledgertest.Move, *team) {
	t.Helper()
	m := new(ledgertest.Move)
	shared := func(d ledgertest.Disclosure) *ledgertest.Service { return ledgertest.NewShared(t, m.Owned, d) }
	w := newWorldOf(t, shared, func(o *identity.Options) { o.Edge.Passer = m })
	server, err := identity.New(w.options)
	if err != nil {
		t.Fatal(err)
	}
	router := w.options.Edge.Router()
	server.Routes(router)
	w.handler = router
	red, blue := w.team("red", "member"), w.team("blue", "admin")
	m.Tenant = red.tenant()
	return red, m, blue
}

func (t *team) size() id.Index { return t.State(t.t, t.tenant()).Size() }

// moving is a call that changes an organization, with the function that creates what it needs.
type moving func(t *team) (who, method, path, body string)

func movingCalls() map[string]moving {
	secret := func(method, below, body string) moving {
		return func(t *team) (string, string, string, string) {
			return "", method, organizations + "/" + t.OrganizationID + below, body
		}
	}
	const stranger = "new@example.com"
	return map[string]moving{
		"a role": func(t *team) (string, string, string, string) {
			return "ann", "PATCH", t.member("member"), `{"role":"admin"}`
		},
		"a removal": func(t *team) (string, string, string, string) { return "ann", "DELETE", t.member("member"), "" },
		"an invitation": func(t *team) (string, string, string, string) {
			return "ann", "POST", t.path + "/invitations", `{"email":"` + stranger + `","role":"member"}`
		},
		"an invitation again": func(t *team) (string, string, string, string) {
			name, _ := t.invite(stranger, "member")
			return "ann", "POST", t.path + "/invitations/" + name + "/resend", ""
		},
		"an invitation taken back": func(t *team) (string, string, string, string) {
			name, _ := t.invite(stranger, "member")
			return "ann", "DELETE", t.path + "/invitations/" + name, ""
		},
		"a new member": func(t *team) (string, string, string, string) {
			_, token := t.invite(stranger, "member")
			return "", "POST", accept, `{"token":"` + token + `","password":"` + password + `"}`
		},
		"a member of another organization": func(t *team) (string, string, string, string) {
			t.prove(address("admin"))
			_, token := t.invite(address("admin"), "member")
			return "", "POST", accept, `{"token":"` + token + `","password":"` + password + `"}`
		},
		"a plan":    secret("PATCH", "", `{"limits":{"agents":7}}`),
		"a log key": secret("POST", "/log-keys", ""),
	}
}

// An organization moves to another node at each point of a call that changes it. The call is passed on and done once.
func TestChangesWhileTheOrganizationMoves(t *testing.T) {
	for name, call := range movingCalls() {
		t.Run(name, func(t *testing.T) { moveDuring(t, call) })
	}
}

// maxLooks is the largest number of owner checks during one call.
const maxLooks = 40

func moveDuring(t *testing.T, call moving) {
	status, changed, passes := 0, id.Index(0), 0
	for at := range maxLooks {
		red, m, blue := newMovingTeam(t)
		who, method, path, body := call(red)
		before, other := red.size(), blue.size()
		m.Begin(at)
		got, answer := red.as(who, method, path, body, "X-Platform-Secret", platformSecret)
		moved, passed := m.End()
		did := red.size() - before
		switch {
		case at == 0:
			if status, changed = got, did; got >= 400 {
				t.Fatalf("undisturbed: got %d %v", got, answer)
			}
		case !moved:
			if passes == 0 {
				t.Errorf("passed at none of %d looks", at-1)
			}
			return
		case did != changed:
			t.Errorf("at look %d: states %d, want %d; %d %v", at, did, changed, got, answer)
		case got == status:
			passes += passed
		case got != http.StatusServiceUnavailable || answer["code"] != "outcome_unknown" || passed > 0:
			t.Errorf("at look %d: got %d %v, passed %d times, want %d", at, got, answer, passed, status)
		}
		if blue.size() != other {
			t.Errorf("at look %d: the other organization has changed", at)
		}
	}
	t.Errorf("%d looks for an owner", maxLooks)
}
