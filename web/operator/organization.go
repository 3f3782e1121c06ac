package operator

import (
	"net/http"
	"strconv"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/web/screen"
)

// organizationView is the content of the page of an organization.
type organizationView struct {
	organization
	Own    []ownLimit
	LogURL string
}

// ownLimit is a limit of an organization in place of its plan's.
type ownLimit struct{ Name, Title, Value string }

// ownLimits returns the limits that an organization can have of its own.
func ownLimits() []ownLimit {
	return []ownLimit{
		{Name: "events_per_month", Title: "Events in a month"},
		{Name: "agents", Title: "Agents"},
		{Name: "ingest_keys", Title: "Ingest keys that are not revoked"},
		{Name: "policies", Title: "Policies"},
		{Name: "policy_versions", Title: "Versions of a policy"},
		{Name: "statements_per_minute", Title: "Changes of people in a minute"},
	}
}

func showOrganization(r *screen.Request) (any, error) {
	v := organizationView{Own: ownLimits()}
	if err := r.Read(organizationCall(r, ""), nil, &v.organization); err != nil {
		return nil, err
	}
	for i := range v.Own {
		if n := v.Limits[v.Own[i].Name]; n != nil {
			v.Own[i].Value = strconv.FormatUint(*n, 10)
		}
	}
	v.LogURL = r.Kit.Public + "/log/" + v.Slug
	r.Title = "Organization " + v.Slug
	return v, nil
}

// organizationPage leads to the page of the form's organization.
func organizationPage(r *screen.Request, notice string) screen.Outcome {
	return screen.GoTo(r.Address(organizationsPage, r.PathParameter("organization")), notice)
}

func changeOrganization(r *screen.Request, body any) (screen.Outcome, error) {
	return organizationPage(r, "saved"), r.Change(http.MethodPatch, organizationCall(r, ""), body, nil)
}

// changePlan sets the plan and all limits.
func changePlan(r *screen.Request) (screen.Outcome, error) {
	limits := make(map[string]*uint64)
	for _, l := range ownLimits() {
		limits[l.Name] = nil
		if text := r.Value(l.Name); text != "" {
			n, err := strconv.ParseUint(text, 10, 53)
			if err != nil {
				return screen.Outcome{}, fault.New(fault.Invalid,
					l.Title+": give a whole number, or none for the plan's")
			}
			limits[l.Name] = &n
		}
	}
	return changeOrganization(r, map[string]any{"plan": r.Value("plan"), "limits": limits})
}

func switchOn(r *screen.Request) (screen.Outcome, error) {
	return changeOrganization(r, map[string]bool{"active": true})
}

func switchOff(r *screen.Request) (screen.Outcome, error) {
	return changeOrganization(r, map[string]bool{"active": false})
}

// freeSignIn takes the required way to sign in away.
func freeSignIn(r *screen.Request) (screen.Outcome, error) {
	return changeOrganization(r, map[string]any{"sign_in": nil})
}

// keyView is the content of the page that shows a key of a log after it changed.
type keyView struct {
	Slug     string  `json:"-"`
	VKey     string  `json:"vkey"`
	FromSize uint64  `json:"from_size"`
	ToSize   *uint64 `json:"to_size"` // nil while it signs
}

// Ends returns the size from which on a retired key signs nothing.
func (k keyView) Ends() uint64 {
	if k.ToSize == nil {
		return 0
	}
	return *k.ToSize
}

func (p *pages) rotateKey(r *screen.Request) (screen.Outcome, error) {
	return p.changeKey(r, "/log-keys", "A new log key")
}

func (p *pages) retireKey(r *screen.Request) (screen.Outcome, error) {
	return p.changeKey(r, "/log-keys/retire", "The older log key is retired")
}

func (p *pages) changeKey(r *screen.Request, call, title string) (screen.Outcome, error) {
	key := keyView{Slug: r.PathParameter("organization")}
	err := r.Change(http.MethodPost, organizationCall(r, call), nil, &key)
	return screen.ShowOnce(p.views, "logkey", title, key), err
}

func askWitnesses(r *screen.Request) (screen.Outcome, error) {
	var found struct {
		Asked []string `json:"asked"`
	}
	err := r.Change(http.MethodPost, organizationCall(r, "/witnesses/ask"), nil, &found)
	if err == nil && len(found.Asked) == 0 {
		return organizationPage(r, "witnesses-none"), nil
	}
	return organizationPage(r, "witnesses-asked"), err
}

func reindex(r *screen.Request) (screen.Outcome, error) {
	return organizationPage(r, "reindexing"), r.Change(http.MethodPost, organizationCall(r, "/reindex"), nil, nil)
}

func correctClock(r *screen.Request) (screen.Outcome, error) {
	body := map[string]string{"reason": r.Value("reason")}
	return organizationPage(r, "log-clock"), r.Change(http.MethodPost, organizationCall(r, "/clock"), body, nil)
}
