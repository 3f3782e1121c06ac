package console

import (
	"embed"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

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
		{Value: "tool-allow-list", Title: "Allow the listed tools alone"},
		{Value: "spending-caps", Title: "Bound each payment"},
		{Value: "spending-limits", Title: "Bound sums and counts over time"},
		{Value: "two-person-rule", Title: "Ask two people for each use of a tool"},
		{Value: "data-classes", Title: "Decide by the class of data and the purpose"},
		{Value: "business-hours", Title: "Decide by the time of day, with a freeze"},
	}
}

// listView is the content of the list.
type listView struct {
	Policies []wire.ListedPolicy
	Names    names
	Next     string // address of the next page
	MayEdit  bool
	Starts   []page.Option
}

func (p *pages) showList(r *page.Request) (any, error) {
	found, err := visitOf(r).Console.ListPolicies(r.Context(), visitOf(r).caller, r.PageQuery())
	if err != nil {
		return nil, err
	}
	people, err := readNames(r)
	return listView{Policies: found.Policies, Names: people, Next: r.NextPage(found.Next),
		MayEdit: r.Person.May("edit policies"), Starts: startOptions()}, err
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
