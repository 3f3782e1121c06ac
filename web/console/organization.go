package console

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/web/page"
	"github.com/agentledger/agentledger/web/screen"
)

const (
	settingsPage     = "/console/settings"
	organizationCall = "/v1/console/organization"
)

func (p *pages) organizationScreens() []screen.Screen {
	return []screen.Screen{
		{Pattern: settingsPage, Views: p.views, Name: "organization", Title: "Settings", Show: p.showOrganization,
			Forms: map[string]screen.Form{"change": p.changeOrganization, "two-people": p.requireTwoPeople,
				"sign-in": p.requireSignIn, "retain": p.changeRetention,
				"votes": p.changeVoteRules}},
	}
}

// organizationSettings has the settings of the organization as the interface shows them.
type organizationSettings struct {
	OrganizationID string `json:"organization_id"`
	Slug           string `json:"slug"`
	Name           string `json:"name"`
	Origin         string `json:"origin"`
	Active         bool   `json:"active"`
	Disclosure     string `json:"disclosure"`
	SelfReview     bool   `json:"self_review"`
	TwoPerson      bool   `json:"two_person_policy"`
	Published      bool   `json:"publish_policies"`
	SignIn         struct {
		Require string `json:"require"`
	} `json:"sign_in"`
	RetentionDays int    `json:"retention_days"`
	LegalHold     bool   `json:"legal_hold"`
	VoteHoldHours int    `json:"vote_hold_hours"`
	SignedVotes   string `json:"signed_votes"`
	CreatedAt     string `json:"created_at"`
	Fault         string `json:"fault"`
}

// planUsage is the use of the plan.
type planUsage struct {
	Plan     string               `json:"plan"`
	Month    string               `json:"month"`
	ResetsAt string               `json:"resets_at"`
	Limits   map[string]planLimit `json:"limits"`
}

// planLimit is the use of one bound. Used is nil for a bound of each agent or policy.
type planLimit struct {
	Used  *uint64 `json:"used"`
	Limit *uint64 `json:"limit"` // nil: no bound
}

// usedLimit is a row of the table of bounds.
type usedLimit struct {
	Title string
	planLimit
}

// rows returns the bounds in the order of the page.
func (u planUsage) rows() []usedLimit {
	var rows []usedLimit
	for _, row := range []struct{ name, title string }{
		{"events_per_month", "Events this month"}, {"agents", "Agents"},
		{"active_keys_per_agent", "Active keys of an agent"}, {"keys_per_agent", "Keys of an agent in all"},
		{"ingest_keys", "Ingest keys"}, {"policies", "Policies"}, {"policy_versions", "Versions of a policy"},
		{"statements_per_minute", "Changes in the last minute"},
	} {
		if one, ok := u.Limits[row.name]; ok {
			rows = append(rows, usedLimit{row.title, one})
		}
	}
	return rows
}

// logKey is a key of the log, as the public interface shows it.
type logKey struct {
	VKey string  `json:"vkey"`
	Use  string  `json:"use"`
	From uint64  `json:"from_size"`
	To   *uint64 `json:"to_size"` // nil: it signs now
}

// organizationView is the content of the page of the settings.
type organizationView struct {
	Organization organizationSettings
	Usage        planUsage
	Bounds       []usedLimit
	Keys         []logKey
	LogURL       string
	PublicURL    string
	Disclosures  []page.Option
	SignIns      []page.Option
	MayManage    bool
	MayOwn       bool
}

func (p *pages) showOrganization(r *screen.Request) (any, error) {
	v := organizationView{MayManage: r.Person.May("manage"), MayOwn: r.Person.May("own"), PublicURL: r.Kit.Public,
		Disclosures: page.Disclosures()}
	if err := r.Read(organizationCall, nil, &v.Organization); err != nil {
		return nil, err
	}
	if err := r.Read(organizationCall+"/plan-usage", nil, &v.Usage); err != nil {
		return nil, err
	}
	v.Bounds, v.LogURL = v.Usage.rows(), r.Address("/log", v.Organization.Slug)
	var err error
	if v.Keys, err = readLogKeys(r, v.Organization.Slug); err != nil {
		return nil, err
	}
	v.SignIns, err = listSignIns(r, v.Organization.SignIn.Require)
	return v, err
}

// readLogKeys reads the keys that sign the checkpoints of the log, the newest last.
func readLogKeys(r *screen.Request, slug string) ([]logKey, error) {
	var found struct {
		Keys []logKey `json:"keys"`
	}
	err := r.Read("/v1/public/orgs/"+url.PathEscape(slug)+"/transparency/keys", nil, &found)
	var keys []logKey
	for _, k := range found.Keys {
		if k.Use == "log" {
			keys = append(keys, k)
		}
	}
	return keys, err
}

// listSignIns returns the ways to sign in that can be required, with the one that is.
func listSignIns(r *screen.Request, required string) ([]page.Option, error) {
	var found struct {
		Providers []struct {
			Name string `json:"name"`
		} `json:"providers"`
	}
	if err := r.Read("/v1/id/auth/oidc", nil, &found); err != nil {
		return nil, err
	}
	ways := []page.Option{{Value: "", Title: "any"}, {Value: "passkey", Title: "a passkey"}}
	for _, provider := range found.Providers {
		ways = append(ways, page.Option{Value: "oidc:" + provider.Name, Title: "the provider " + provider.Name})
	}
	for _, way := range ways {
		if way.Value == required {
			return ways, nil
		}
	}
	return append(ways, page.Option{Value: required, Title: required}), nil
}

// patch changes settings of the organization.
func (p *pages) patch(r *screen.Request, body map[string]any) (screen.Outcome, error) {
	err := r.Change(http.MethodPatch, organizationCall, body, nil)
	return screen.GoTo(r.Address(settingsPage), "saved"), err
}

func (p *pages) changeOrganization(r *screen.Request) (screen.Outcome, error) {
	return p.patch(r, map[string]any{"name": r.Value("name"), "disclosure": r.Value("disclosure"),
		"self_review": r.Checked("self_review"), "publish_policies": r.Checked("publish_policies")})
}

func (p *pages) requireTwoPeople(r *screen.Request) (screen.Outcome, error) {
	return p.patch(r, map[string]any{"two_person_policy": r.Checked("two_person_policy")})
}

func (p *pages) requireSignIn(r *screen.Request) (screen.Outcome, error) {
	var required any // null: any way
	if way := r.Value("require"); way != "" {
		required = way
	}
	return p.patch(r, map[string]any{"sign_in": map[string]any{"require": required}})
}

func (p *pages) changeVoteRules(r *screen.Request) (screen.Outcome, error) {
	hours, err := strconv.Atoi(r.Value("vote_hold_hours"))
	if err != nil {
		return screen.Outcome{}, fault.Wrap(fault.Invalid, "vote_hold_hours must be a whole number from 0 to 2160", err)
	}
	signed := "optional"
	if r.Checked("signed_votes") {
		signed = "required"
	}
	return p.patch(r, map[string]any{"vote_hold_hours": hours, "signed_votes": signed})
}

func (p *pages) changeRetention(r *screen.Request) (screen.Outcome, error) {
	days, err := strconv.Atoi(r.Value("retention_days"))
	if err != nil {
		return screen.Outcome{}, fault.Wrap(fault.Invalid, "retention_days must be a whole number from 0 to 36500", err)
	}
	return p.patch(r, map[string]any{"retention_days": days, "legal_hold": r.Checked("legal_hold")})
}
