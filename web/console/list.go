package console

import (
	"cmp"
	"embed"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// starts are documents to begin with. They are those of docs/policies, which a test compares.
//
//go:embed starts
var starts embed.FS

// startOptions returns the choice of starting documents.
func startOptions() []page.Option {
	return []page.Option{
		{Value: "", Title: "Nothing: everything is allowed until a rule says otherwise"},
		{Value: "refund-approvals", Title: "Allow reads, ask a person for refunds above an amount, deny the rest"},
		{Value: "tool-allow-list", Title: "Allow only the listed tools"},
		{Value: "spending-caps", Title: "Limit each payment"},
		{Value: "spending-limits", Title: "Limit sums and counts over time"},
		{Value: "two-person-rule", Title: "Ask two people for each use of a tool"},
		{Value: "data-classes", Title: "Decide by the class of data and the purpose"},
		{Value: "own-account", Title: "Let agents act only on the account of the user for whom they act"},
		{Value: "business-hours", Title: "Decide by the time of day, with a freeze"},
	}
}

// listView is the content of the list, or the form for a new policy.
type listView struct {
	Table    *table
	Policies []*policyRow
	Active   *activePolicy // nil if no policy is active
	New      bool          // show the form
	MayEdit  bool
	Starts   []page.Option
}

// policyRow is a policy in the list.
type policyRow struct{ wire.ListedPolicy }

// Status returns the state of the policy in one word.
func (p *policyRow) Status() string {
	if p.ActiveVersion != 0 {
		return "active"
	}
	return p.State
}

// activePolicy is the version that decides, with the decisions on acts since then.
type activePolicy struct {
	version
	Counted                bool // whether acts can be counted now
	Acts                   uint64
	Allowed, Asked, Denied uint64
}

// fewRules is the maximum number of rules of the active policy in the list of policies.
const fewRules = 4

// FewRules returns the first rules.
func (p *activePolicy) FewRules() []rule { return p.Rules[:min(fewRules, len(p.Rules))] }

// MoreRules returns the number of the other rules.
func (p *activePolicy) MoreRules() int { return len(p.Rules) - len(p.FewRules()) }

func (p *pages) showList(r *page.Request) (any, error) {
	v := listView{MayEdit: r.Person.May("edit policies"), Starts: startOptions()}
	if v.New = v.MayEdit && isNew(r, "create"); v.New {
		r.Title = "New policy"
		return v, nil
	}
	file, err := asFile(r)
	if err != nil {
		return nil, err
	}
	found, err := visitOf(r).Console.ListPolicies(r.Context(), visitOf(r).caller, entriesQuery(r))
	if err != nil {
		return nil, err
	}
	var all []*policyRow
	for _, one := range found.Policies {
		all = append(all, &policyRow{one})
	}
	v.Policies, v.Table, err = newTable(r, all,
		func(p *policyRow) string { return p.Name + " " + p.PolicyID + " " + p.Status() },
		[]sortable[*policyRow]{
			{"name", func(a, b *policyRow) int { return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) }},
			{"state", func(a, b *policyRow) int { return strings.Compare(a.Status(), b.Status()) }},
			{"version", func(a, b *policyRow) int { return cmp.Compare(a.Version, b.Version) }},
			{"changed", func(a, b *policyRow) int { return cmp.Compare(a.UpdatedAt, b.UpdatedAt) }},
		})
	v.Table.Label, v.Table.Hint, v.Table.Further = "Search policies", "Name, ID or state", furtherEntries(r, found.Next)
	switch {
	case err != nil:
		return v, r.Correctable(err)
	case file:
		return csvFile("policies", []string{"policy_id", "name", "state", "active_version", "latest_version", "changed_at", "changed_by"},
			v.Policies, func(p *policyRow) []api.Cell {
				return []api.Cell{api.TextCell(p.PolicyID), api.TextCell(p.Name), api.TextCell(p.State), api.NumberCell(uint64(p.ActiveVersion)),
					api.NumberCell(p.Version), api.TextCell(p.UpdatedAt.String()), api.TextCell(string(p.UpdatedBy))}
			}), nil
	}
	if at := slices.IndexFunc(all, func(p *policyRow) bool { return p.ActiveVersion != 0 }); at >= 0 {
		v.Active, err = readActive(r, all[at].ListedPolicy)
	}
	return v, err
}

// readActive reads the active version of a policy and counts its decisions.
func readActive(r *page.Request, listed wire.ListedPolicy) (*activePolicy, error) {
	v, err := readVersionOf(r, listed.PolicyID, strconv.FormatUint(uint64(listed.ActiveVersion), 10))
	if err != nil {
		return nil, err
	}
	active := &activePolicy{version: v}
	query := url.Values{"by": {"decision"}, "from": {v.ActivatedAt.String()}}
	found, counted, err := countActs(r, query)
	if err != nil {
		return nil, err
	}
	active.Counted, active.Acts = counted, found.Acts
	for _, c := range found.Counts {
		switch textOf(c.Decision) {
		case "allow":
			active.Allowed = c.Acts
		case "deny":
			active.Denied = c.Acts
		case "allow_with_obligation":
			active.Asked = c.Acts
		}
	}
	return active, nil
}

// createPolicy creates a policy from the chosen document.
func (p *pages) createPolicy(r *page.Request) (page.Outcome, error) {
	document := members{"rules": jsontext.Value("[]")}
	if start := r.Value("start"); start != "" {
		text, err := starts.ReadFile("starts/" + start + ".json")
		if err != nil {
			return page.Outcome{}, fault.Wrap(fault.Invalid, "Unknown policy to start from", err)
		}
		if err := json.Unmarshal(text, &document); err != nil {
			return page.Outcome{}, err
		}
	}
	for name, value := range map[string]string{"name": r.Value("name"), "policy_id": r.Value("policy_id")} {
		if value == "" && name == "policy_id" {
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return page.Outcome{}, err
		}
		document[name] = text
	}
	text, err := json.Marshal(document)
	if err != nil {
		return page.Outcome{}, err
	}
	v := visitOf(r)
	made, err := v.Console.CreatePolicy(r.Context(), v.caller, text)
	if err != nil {
		return page.Outcome{}, err
	}
	return page.GoTo(r.Address("/console/policies", made.PolicyID)+"/edit", "policy-made"), nil
}
