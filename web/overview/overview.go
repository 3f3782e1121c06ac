// Package overview has the first page of an organization: approvals that wait, the use of the plan, and the public log.
//
// Invariants:
//
//   - The page shows documents of the console alone, and changes nothing.
package overview

import (
	"embed"
	"net/url"

	"github.com/agentledger/agentledger/web/page"
	"github.com/agentledger/agentledger/web/screen"
)

//go:embed templates
var templates embed.FS

// Screens returns the pages.
func Screens(k *page.Kit) []screen.Screen {
	views := k.Parse(templates, nil, []string{"overview"})
	return []screen.Screen{{Pattern: "/console", Views: views, Name: "overview", Title: "Overview", Show: show}}
}

// view is the content of the page.
type view struct {
	Organization organization
	Usage        usage
	Waiting      []approval // open approvals, the newest first
	More         bool       // others wait too
	LogURL       string
	Role         string
}

type organization struct {
	Name       string `json:"name"`
	Slug       string `json:"slug"`
	Origin     string `json:"origin"`
	Active     bool   `json:"active"`
	Disclosure string `json:"disclosure"`
	Fault      string `json:"fault"`
}

type usage struct {
	Plan            string `json:"plan"`
	Month           string `json:"month"`
	ResetsAt        string `json:"resets_at"`
	EventsThisMonth uint64 `json:"events_this_month"`
	EventsPerMonth  uint64 `json:"events_per_month"` // 0: no cap
}

type approval struct {
	ID      string `json:"approval_id"`
	Tool    string `json:"tool_name"`
	Agent   string `json:"agent_id"`
	MayVote bool   `json:"may_vote"`
}

func show(r *screen.Request) (any, error) {
	v := view{Role: r.Person.User.Role}
	if err := r.Read("/v1/console/organization", nil, &v.Organization); err != nil {
		return nil, err
	}
	if err := r.Read("/v1/console/organization/plan-usage", nil, &v.Usage); err != nil {
		return nil, err
	}
	var open struct {
		Approvals []approval `json:"approvals"`
		Next      string     `json:"next"`
	}
	err := r.Read("/v1/console/approvals", url.Values{"status": {"pending"}, "limit": {"5"}}, &open)
	v.Waiting, v.More, v.LogURL = open.Approvals, open.Next != "", r.Address("/log", v.Organization.Slug)
	return v, err
}
