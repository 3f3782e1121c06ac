package console

import (
	"net/url"
	"strconv"
	"strings"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// policyView is the content of a policy's page: one version in words, and the list of all versions.
type policyView struct {
	version
	Document   string // canonical JSON, indented; "" if it is too long
	Names      names
	Newest     uint64            // the latest version
	Active     wire.ListedPolicy // the active policy; without an ID if there is none
	Former     uint64            // the other version of this policy that was last active; 0 if none
	Versions   []head
	Next       string // address of the next page of versions
	TwoPersons bool   // the writer of a version may not activate it
	OwnWork    bool   // the reader made the last change of this version
	MayEdit    bool
	MayTry     bool
}

func (p *pages) showPolicy(r *page.Request) (any, error) {
	v := policyView{MayEdit: r.Person.May("edit policies"), MayTry: r.Person.May("try policies")}
	var err error
	if v.version, err = readVersion(r, r.Query("version")); err != nil {
		return nil, err
	}
	if err := v.readVersions(r); err != nil {
		return nil, err
	}
	if err := v.findActive(r); err != nil {
		return nil, err
	}
	organization, err := visitOf(r).Console.ShowOrganization(r.Context(), visitOf(r).caller)
	if err != nil {
		return nil, err
	}
	author, _, _ := strings.Cut(v.WrittenBy, "/")
	v.TwoPersons, v.OwnWork = organization.TwoPerson, author == r.Person.Account.ID
	if v.Names, err = readNames(r); err != nil {
		return nil, err
	}
	r.Title = "Policy " + v.Name
	text, err := canonicalLines(v.Text)
	v.Document = string(text)
	return v, err
}

// readVersions reads the list of versions, and finds the active one.
func (v *policyView) readVersions(r *page.Request) error {
	found, err := visitOf(r).Console.ListPolicyVersions(r.Context(), visitOf(r).caller, r.PathParameter("policy"), r.PageQuery())
	if err != nil {
		return err
	}
	v.Versions, v.Next = describeVersions(found.Versions), r.NextPage(found.Next)
	if r.Query("after") != "" {
		return nil
	}
	var archived wire.Time
	for _, one := range found.Versions {
		if one.ArchivedAt > archived && one.Version != v.Version {
			v.Former, archived = one.Version, one.ArchivedAt
		}
	}
	return nil
}

// maxPolicies is the maximum number of policies of an organization.
const maxPolicies = "1000"

// findActive finds the organization's active version, which may belong to another policy.
func (v *policyView) findActive(r *page.Request) error {
	found, err := visitOf(r).Console.ListPolicies(r.Context(), visitOf(r).caller, url.Values{"limit": {maxPolicies}})
	if err != nil {
		return err
	}
	for _, one := range found.Policies {
		if one.PolicyID == v.PolicyID {
			v.Newest = one.Version
		}
		if one.ActiveVersion != 0 {
			v.Active = one
		}
	}
	return nil
}

// activateVersion activates the version that was shown.
func (p *pages) activateVersion(r *page.Request) (page.Outcome, error) {
	number, err := parseNumber("version", r.Value("version"))
	if err != nil {
		return page.Outcome{}, err
	}
	wanted := api.Activation{Version: &number}
	if err := edge.ParseMember("policy_digest", r.Value("policy_digest"), &wanted.Digest); err != nil {
		return page.Outcome{}, err
	}
	v := visitOf(r)
	if _, err := v.Console.ActivatePolicy(r.Context(), v.caller, r.PathParameter("policy"), wanted); err != nil {
		return page.Outcome{}, explainActivation(r, err)
	}
	return page.GoTo(policyAddress(r, "?version="+strconv.FormatUint(number, 10)), "policy-activated"), nil
}

// explainActivation adds to the explanation of a refused activation if the page can help.
func explainActivation(r *page.Request, err error) error {
	if !fault.Is(err, fault.Conflict) {
		return err
	}
	now, unread := readVersion(r, r.Value("version"))
	if unread == nil && now.Digest.String() != r.Value("policy_digest") {
		return refuseConflict("The version was changed meanwhile, and is shown as it is now. " +
			"Check it again before you activate it.")
	}
	switch refused := fault.Of(err); refused.Code {
	case "second_person":
		return refuseConflict(refused.Message + ". Ask a colleague who may edit policies to open this page.")
	case "quorum_unreachable":
		return refuseConflict(refused.Message + ". Ask for fewer approvals, or give more members a role that votes.")
	}
	return err
}

func (p *pages) deactivatePolicy(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	_, err := v.Console.DeactivatePolicy(r.Context(), v.caller, r.PathParameter("policy"))
	return page.GoTo(policyAddress(r, ""), "policy-deactivated"), err
}

func (p *pages) deleteDraft(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	if err := v.Console.DeletePolicy(r.Context(), v.caller, r.PathParameter("policy")); err != nil {
		return page.Outcome{}, err
	}
	if r.Value("version") == "1" {
		return page.GoTo(r.Address("/console/policies"), "draft-deleted"), nil
	}
	return page.GoTo(policyAddress(r, ""), "draft-deleted"), nil
}
