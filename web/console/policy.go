package console

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/textcheck"
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
	FormerHash id.Hash           // its digest
	BackUntil  id.Instant        // until when Former has a button; 0 if its time is over
	Ask        string            // the change that the reader has to confirm: activate, deactivate, delete; "" if none
	Checked    *checked          // the version to activate, checked with the acts of the last week
	Versions   []head

	OpenApprovals string // what becomes of open approvals by that change

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
	r.Title = v.Name
	if err := v.readConfirmation(r); err != nil {
		return nil, err
	}
	text, err := canonicalLines(v.Text)
	v.Document = string(text)
	return v, err
}

// readConfirmation reads what a change would do that the reader has to confirm.
func (v *policyView) readConfirmation(r *page.Request) error {
	if v.IsActive() && v.Former != 0 {
		if until := id.InstantOf(id.Instant(v.ActivatedAt).Time().Add(backTime)); until > id.InstantOf(time.Now()) {
			v.BackUntil = until
		}
	}
	v.Ask = r.Query("ask")
	switch allowed := v.MayEdit; {
	case v.Ask == "activate" && allowed && !v.IsActive():
		document, err := canonicalDocument(v.Text)
		if err != nil {
			return err
		}
		if v.Checked, err = checkDocument(r, document, true); err != nil {
			return err
		}
		return v.foresee(r, v.PolicyID)
	case v.Ask == "deactivate" && allowed && v.IsActive() && !v.TwoPersons:
		return v.foresee(r, "")
	case v.Ask == "delete" && allowed && v.IsDraft():
		return nil
	}
	v.Ask = ""
	return nil
}

// foresee reads what becomes of open approvals if the shown version of a policy is activated, or with "" if none is active.
func (v *policyView) foresee(r *page.Request, name string) error {
	found, err := visitOf(r).Console.ForeseeApprovals(r.Context(), visitOf(r).caller, name, v.Version)
	switch {
	case err != nil:
		return err
	case found.Stay+found.End+found.Unknown == 0:
		v.OpenApprovals = "No approval is open."
		return nil
	}
	v.OpenApprovals = fmt.Sprintf("Open approvals: %s, %d will end", textcheck.Count(found.Stay, "continues", "continue"), found.End)
	if found.Unknown > 0 {
		v.OpenApprovals += fmt.Sprintf(", %d not checked", found.Unknown)
	}
	v.OpenApprovals += "."
	return nil
}

// backTime is how long an activation has a button that takes it back.
const backTime = 15 * time.Minute

// Deletes returns what the deletion of the draft removes, in words.
func (v policyView) Deletes() string {
	return textcheck.Count(len(v.Rules), "rule") + " and " + textcheck.Count(len(v.Tests), "test")
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
			v.Former, v.FormerHash, archived = one.Version, one.Digest, one.ArchivedAt
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
		return refuseConflict("The version was changed in the meantime, and is shown as it is now. " +
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
