package people

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/internal/wire"
)

// step is one change of an organization. Steps are carried out in the order of the plan.
type step struct {
	Kind    string   `json:"kind"` // agent, key, webhook, member or policy
	Name    string   `json:"name"`
	Action  string   `json:"action"`
	Details []string `json:"details,omitzero"`

	needs string // the permission that the calls require
	do    func(context.Context) error
}

// actionUnmanaged marks what an organization has and the files do not mention. It is printed and stays as it is.
const actionUnmanaged = "not in the files"

// maxListed bounds how many elements of a list of the service are read.
const maxListed = 100_000

// planner compares a declaration with an organization.
type planner struct {
	*session
	declaration
	organization wire.Organization
	identity     string          // address of the members' calls
	secrets      func(any) error // keeps what the service shows only once

	steps     []step
	unmanaged []step
}

func (p *planner) add(s step) { p.steps = append(p.steps, s) }

func (p *planner) leave(kind, name, detail string) {
	p.unmanaged = append(p.unmanaged, step{Kind: kind, Name: name, Action: actionUnmanaged, Details: []string{detail}})
}

// sends returns the function of a step that makes one call and needs nothing of its answer.
func (p *planner) sends(method, address string, body any) func(context.Context) error {
	return func(ctx context.Context) error { return p.patiently(ctx, method, address, body, nil) }
}

func (p *planner) console(path ...string) string {
	address := p.base + "/v1/console"
	for _, part := range path {
		address += "/" + url.PathEscape(part)
	}
	return address
}

// listing is all pages of a list of the service, in the member that has its name.
type listing struct {
	Agents      []wire.Agent        `json:"agents"`
	Keys        []wire.AgentKey     `json:"keys"`
	Endpoints   []wire.Endpoint     `json:"endpoints"`
	Members     []wire.Member       `json:"members"`
	Invitations []wire.Invitation   `json:"invitations"`
	Policies    []wire.ListedPolicy `json:"policies"`
	Next        wire.Text           `json:"next"`
}

// readAll reads all pages of a list.
func (p *planner) readAll(ctx context.Context, address string) (all listing, err error) {
	for pages := 0; pages < maxListed/1000; pages++ {
		var page listing
		query := "?limit=1000"
		if all.Next != "" {
			query += "&after=" + url.QueryEscape(string(all.Next))
		}
		if err := p.patiently(ctx, http.MethodGet, address+query, nil, &page); err != nil {
			return all, err
		}
		all.Agents = append(all.Agents, page.Agents...)
		all.Keys = append(all.Keys, page.Keys...)
		all.Members = append(all.Members, page.Members...)
		all.Invitations = append(all.Invitations, page.Invitations...)
		all.Policies = append(all.Policies, page.Policies...)
		if all.Next = page.Next; all.Next == "" {
			return all, nil
		}
	}
	return all, fmt.Errorf("%s has more than %d elements", address, maxListed)
}

// places are the places of the elements of a list, by name. An element is taken once.
type places map[string]int

func newPlaces(n int, name func(int) string) places {
	p := make(places, n)
	for i := range n {
		p[name(i)] = i
	}
	return p
}

// take returns the place of an element, or -1 if there is none or it was taken.
func (p places) take(name string) int {
	i, there := p[name]
	if !there {
		return -1
	}
	delete(p, name)
	return i
}

// plan reads the organization and collects the steps that lead to the declared state. It changes nothing.
func (p *planner) plan(ctx context.Context) error {
	p.steps, p.unmanaged = nil, nil
	for _, part := range []func(context.Context) error{p.planAgents, p.planWebhooks, p.planMembers, p.planPolicies} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// differs notes a member that is declared and that has another value.
func differs[T comparable](patch map[string]any, details *[]string, name string, now T, declared *T) {
	if declared != nil && *declared != now {
		patch[name] = *declared
		*details = append(*details, fmt.Sprintf("%s: %s, was %s", name, shownValue(*declared), shownValue(now)))
	}
}

// differsSet is differs for a list whose order does not matter.
func differsSet(patch map[string]any, details *[]string, name string, now []string, declared *[]string) {
	if declared == nil {
		return
	}
	before, after := slices.Sorted(slices.Values(now)), slices.Sorted(slices.Values(*declared))
	if !slices.Equal(slices.Compact(before), slices.Compact(after)) {
		patch[name] = *declared
		*details = append(*details, fmt.Sprintf("%s: %s, was %s", name, shownValue(strings.Join(after, " ")), shownValue(strings.Join(before, " "))))
	}
}

func shownValue(v any) string {
	if text, ok := v.(string); ok {
		return strconv.Quote(textcheck.Printable(text))
	}
	return fmt.Sprint(v)
}

func (p *planner) planAgents(ctx context.Context) error {
	if len(p.agents) == 0 {
		return nil
	}
	list, err := p.readAll(ctx, p.console("agents"))
	found := list.Agents
	if err != nil {
		return fmt.Errorf("read agents: %w", err)
	}
	places := newPlaces(len(found), func(i int) string { return string(found[i].AgentID) })
	for _, a := range p.agents {
		now := wire.Agent{Active: true}
		at := places.take(a.AgentID)
		if at >= 0 {
			now = found[at]
		}
		if err := p.planAgent(ctx, a, now, at >= 0); err != nil {
			return fmt.Errorf("%s: %s: %w", agentsFile, textcheck.Printable(a.AgentID), err)
		}
	}
	for i := range found {
		if name := string(found[i].AgentID); places.take(name) >= 0 {
			p.leave("agent", name, "active: "+strconv.FormatBool(found[i].Active))
		}
	}
	return nil
}

// planAgent creates an agent with its first active key, because the service would generate the key of an agent without one.
func (p *planner) planAgent(ctx context.Context, a declaredAgent, now wire.Agent, exists bool) error {
	patch, details := map[string]any{}, []string(nil)
	keys := slices.Clone(a.Keys)
	if !exists {
		first := slices.IndexFunc(keys, func(k declaredKey) bool { return k.Status == "" || k.Status == keyActive })
		if first < 0 {
			return errors.New("a new agent needs an active key")
		}
		k := keys[first]
		keys = slices.Delete(keys, first, first+1)
		body, err := k.registration()
		if err != nil {
			return err
		}
		body["agent_id"] = a.AgentID
		if a.DisplayName != nil {
			body["display_name"] = *a.DisplayName
			now.DisplayName = *a.DisplayName
		}
		p.add(step{Kind: "agent", Name: a.AgentID, Action: "create", Details: []string{"key " + k.KeyID}, needs: "manage",
			do: p.sends(http.MethodPost, p.console("agents"), body)})
	}
	differs(patch, &details, "display_name", now.DisplayName, a.DisplayName)
	differs(patch, &details, "bridge", now.Bridge, a.Bridge)
	differs(patch, &details, "active", now.Active, a.Active)
	if err := p.planKeys(ctx, a.AgentID, keys, exists); err != nil {
		return err
	}
	if len(patch) > 0 {
		p.add(step{Kind: "agent", Name: a.AgentID, Action: "change", Details: details, needs: "manage",
			do: p.sends(http.MethodPatch, p.console("agents", a.AgentID), patch)})
	}
	return nil
}

func (k declaredKey) registration() (map[string]any, error) {
	if k.ProofB64 == "" {
		return nil, fmt.Errorf("key %s is new: it needs proof_b64, which aps keygen --proof prints", k.KeyID)
	}
	return map[string]any{"key_id": k.KeyID, "public_key_b64": k.PublicKeyB64, "proof_b64": k.ProofB64}, nil
}

func (p *planner) planKeys(ctx context.Context, agent string, keys []declaredKey, exists bool) error {
	var found []wire.AgentKey
	if exists {
		list, err := p.readAll(ctx, p.console("agents", agent, "keys"))
		if err != nil {
			return fmt.Errorf("read keys: %w", err)
		}
		found = list.Keys
	}
	places := newPlaces(len(found), func(i int) string { return string(found[i].KeyID) })
	for _, k := range keys {
		var now *wire.AgentKey
		if at := places.take(k.KeyID); at >= 0 {
			now = &found[at]
		}
		if err := p.planKey(agent, k, now); err != nil {
			return err
		}
	}
	for i := range found {
		if name := string(found[i].KeyID); found[i].Status == keyActive && places.take(name) >= 0 {
			p.leave("key", agent+"/"+name, keyActive)
		}
	}
	return nil
}

func (p *planner) planKey(agent string, k declaredKey, now *wire.AgentKey) error {
	s := step{Kind: "key", Name: agent + "/" + k.KeyID, needs: "manage"}
	active := k.Status == "" || k.Status == keyActive
	switch {
	case now == nil && !active: // nothing to end
		return nil
	case now == nil:
		body, err := k.registration()
		if err != nil {
			return err
		}
		s.Action, s.do = "register", p.sends(http.MethodPost, p.console("agents", agent, "keys"), body)
	case now.PublicKeyB64 != k.PublicKeyB64:
		return fmt.Errorf("key %s has another public key in the service: give the new key its own key_id", k.KeyID)
	case active && now.Status == keyActive, k.Status == now.Status:
		return nil
	case active:
		return fmt.Errorf("key %s is %s, which is final: set its status in the file, and declare a new key", k.KeyID, now.Status)
	case k.Status == keyRevoked:
		s.Action, s.needs, s.do = "revoke", "revoke keys", p.sends(http.MethodPost, p.console("agents", agent, "keys", k.KeyID, "revoke"), map[string]any{})
	case now.Status == keyActive:
		s.Action, s.do = "retire", p.sends(http.MethodPost, p.console("agents", agent, "keys", k.KeyID, "retire"), nil)
	default:
		return fmt.Errorf("key %s is revoked, which is final: set its status in the file", k.KeyID)
	}
	p.add(s)
	return nil
}

func (p *planner) planWebhooks(ctx context.Context) error {
	if len(p.webhooks) == 0 {
		return nil
	}
	var answer listing // all endpoints are on each page
	if err := p.patiently(ctx, http.MethodGet, p.console("webhooks")+"?limit=1", nil, &answer); err != nil {
		return fmt.Errorf("read webhooks: %w", err)
	}
	for _, w := range p.webhooks {
		var same []wire.Endpoint
		answer.Endpoints = slices.DeleteFunc(answer.Endpoints, func(e wire.Endpoint) bool {
			if e.Name == w.Name {
				same = append(same, e)
			}
			return e.Name == w.Name
		})
		if len(same) > 1 {
			return fmt.Errorf("%s: the organization has %d endpoints with the name %s: rename or delete all but one", webhooksFile, len(same), textcheck.Printable(w.Name))
		}
		p.planWebhook(w, same)
	}
	for _, e := range answer.Endpoints {
		p.leave("webhook", e.Title(), e.State)
	}
	return nil
}

func (p *planner) planWebhook(w declaredWebhook, same []wire.Endpoint) {
	patch, details := map[string]any{}, []string(nil)
	if len(same) == 0 {
		differsSet(patch, &details, "events", nil, &w.Events)
		differsSet(patch, &details, "tools", nil, w.Tools)
		differsSet(patch, &details, "agents", nil, w.Agents)
		differs(patch, &details, "format", "", w.Format)
		patch["name"], patch["url"] = w.Name, w.URL
		p.add(step{Kind: "webhook", Name: w.Name, Action: "create", Details: []string{"to " + hostOnly(w.URL)}, needs: "manage",
			do: func(ctx context.Context) error { return p.createWebhook(ctx, patch, w.Active) }})
		return
	}
	now := same[0]
	if string(now.URL) != w.URL {
		patch["url"] = w.URL
		details = append(details, "url: to "+hostOnly(w.URL)+", was "+hostOnly(string(now.URL)))
	}
	agents := make([]string, len(now.Agents))
	for i, a := range now.Agents {
		agents[i] = string(a)
	}
	differsSet(patch, &details, "events", now.Events, &w.Events)
	differsSet(patch, &details, "tools", now.Tools, w.Tools)
	differsSet(patch, &details, "agents", agents, w.Agents)
	differs(patch, &details, "format", now.Format, w.Format)
	differs(patch, &details, "active", now.State == "active", w.Active)
	if len(patch) > 0 {
		p.add(step{Kind: "webhook", Name: w.Name, Action: "change", Details: details, needs: "manage",
			do: p.sends(http.MethodPatch, p.console("webhooks", now.EndpointID), patch)})
	}
}

// createWebhook keeps the secret of a new endpoint, and switches the endpoint off if that is declared.
func (p *planner) createWebhook(ctx context.Context, body map[string]any, active *bool) error {
	var made wire.Endpoint
	if err := p.patiently(ctx, http.MethodPost, p.console("webhooks"), body, &made); err != nil {
		return err
	}
	err := p.secrets(map[string]any{"kind": "webhook", "name": made.Name, "endpoint_id": made.EndpointID, "secret": made.Secret})
	if err != nil || active == nil || *active {
		return err
	}
	return p.patiently(ctx, http.MethodPatch, p.console("webhooks", made.EndpointID), map[string]any{"active": false}, nil)
}

// hostOnly returns the scheme and the host of an address. The rest of a receiver's address may be a secret.
func hostOnly(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "?"
	}
	return textcheck.Printable(u.Scheme + "://" + u.Host)
}

func (p *planner) planMembers(ctx context.Context) error {
	if p.members == nil {
		return nil
	}
	list, err := p.readAll(ctx, p.identity+"/members")
	members := list.Members
	if err == nil {
		list, err = p.readAll(ctx, p.identity+"/invitations")
	}
	invitations := list.Invitations
	if err != nil {
		return fmt.Errorf("read members: %w", err)
	}
	belong := newPlaces(len(members), func(i int) string { return strings.ToLower(members[i].Email) })
	invited := newPlaces(len(invitations), func(i int) string { return strings.ToLower(invitations[i].Email) })
	for _, m := range p.members {
		invitation := wire.Invitation{}
		if at := invited.take(m.Email); at >= 0 {
			invitation = invitations[at]
		}
		if at := belong.take(m.Email); at >= 0 {
			p.planMember(m, members[at])
		} else if m.Suspended == nil || !*m.Suspended {
			p.planInvitation(m, invitation)
		}
	}
	for i := range members {
		if email := strings.ToLower(members[i].Email); belong.take(email) >= 0 {
			p.leave("member", email, members[i].Role)
		}
	}
	for i := range invitations {
		if email := strings.ToLower(invitations[i].Email); invited.take(email) >= 0 {
			p.leave("member", email, "invited as "+invitations[i].Role)
		}
	}
	return nil
}

func needsOwner(permission string, roles ...string) string {
	if slices.Contains(roles, "owner") {
		return "own"
	}
	return permission
}

func (p *planner) planMember(m declaredMember, now wire.Member) {
	patch, details := map[string]any{}, []string(nil)
	differs(patch, &details, "role", now.Role, &m.Role)
	differs(patch, &details, "suspended", now.Suspended, m.Suspended)
	if len(patch) > 0 {
		p.add(step{Kind: "member", Name: m.Email, Action: "change", Details: details, needs: needsOwner("change members", now.Role, m.Role),
			do: p.sends(http.MethodPatch, p.identity+"/members/"+url.PathEscape(now.MembershipID), patch)})
	}
}

// planInvitation invites somebody, in place of an open invitation with another role.
func (p *planner) planInvitation(m declaredMember, open wire.Invitation) {
	if open.Role == m.Role {
		return
	}
	s := step{Kind: "member", Name: m.Email, Action: "invite", Details: []string{"role: " + shownValue(m.Role)}, needs: needsOwner("invite", open.Role, m.Role)}
	if open.InvitationID != "" {
		s.Details[0] += ", was " + shownValue(open.Role)
	}
	s.do = func(ctx context.Context) error {
		if open.InvitationID != "" {
			err := p.patiently(ctx, http.MethodDelete, p.identity+"/invitations/"+url.PathEscape(open.InvitationID), nil, nil)
			if err != nil {
				return err
			}
		}
		var sent wire.SentInvitation
		err := p.patiently(ctx, http.MethodPost, p.identity+"/invitations", map[string]any{"email": m.Email, "role": m.Role}, &sent)
		if err != nil || sent.Mailed {
			return err
		}
		return p.secrets(map[string]any{"kind": "invitation", "name": m.Email, "url": sent.URL})
	}
	p.add(s)
}

// planPolicies has the service check each document before anything is planned: the service enforces them.
func (p *planner) planPolicies(ctx context.Context) error {
	if len(p.policies) == 0 {
		return nil
	}
	list, err := p.readAll(ctx, p.console("policies"))
	found := list.Policies
	if err != nil {
		return fmt.Errorf("read policies: %w", err)
	}
	replaces := ""
	for _, l := range found {
		if l.ActiveVersion > 0 {
			replaces = fmt.Sprintf("instead of %s version %d", textcheck.Printable(l.PolicyID), l.ActiveVersion)
		}
	}
	places := newPlaces(len(found), func(i int) string { return found[i].PolicyID })
	var last []step // the activation
	for _, d := range p.policies {
		var listed wire.ListedPolicy
		if at := places.take(d.policy); at >= 0 {
			listed = found[at]
		}
		checked, err := p.checkDocument(ctx, d)
		if err == nil {
			err = checked.fit(d.policy == p.active)
		}
		if err == nil {
			err = p.planPolicy(ctx, d, checked, listed, replaces, &last)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", d.file, err)
		}
	}
	p.steps = append(p.steps, last...)
	for _, l := range found {
		if places.take(l.PolicyID) >= 0 {
			p.leave("policy", l.PolicyID, fmt.Sprintf("version %d, %s", l.Version, l.State))
		}
	}
	return nil
}

// fit returns why a document can't be stored or, if it is to be enforced, activated.
func (c *checkedDocument) fit(active bool) error {
	switch {
	case c.Problem != "":
		return &Refusal{Status: http.StatusUnprocessableEntity, Message: c.Problem}
	case len(c.Failures) > 0:
		return &Refusal{Status: http.StatusConflict, Message: fmt.Sprintf("%d of %s: aps policy test", len(c.Failures),
			textcheck.Count(c.Tests, "test does not pass", "tests do not pass"))}
	case active && c.Quorum != "":
		return &Refusal{Status: http.StatusConflict, Message: string(c.Quorum)}
	}
	return nil
}

// planPolicy compares a document with the active version, if it is to be enforced and that exists, and otherwise with the
// latest version. A draft that somebody is writing after the active version stays as it is until the document changes.
func (p *planner) planPolicy(ctx context.Context, d document, checked checkedDocument, listed wire.ListedPolicy, replaces string, last *[]step) error {
	enforced := d.policy == p.active
	if enforced && listed.ActiveVersion > 0 && uint64(listed.ActiveVersion) != listed.Version {
		active, err := p.readVersion(ctx, d.policy, uint64(listed.ActiveVersion))
		if err != nil {
			return err
		}
		if active != nil && active.equals(checked) {
			p.leave("policy", d.policy, fmt.Sprintf("version %d, %s", listed.Version, listed.State))
			return nil
		}
	}
	var newest *policyVersion
	if listed.Version > 0 {
		var err error
		if newest, err = p.readVersion(ctx, d.policy, 0); err != nil {
			return err
		}
	}
	ready := newest
	change := step{Kind: "policy", Name: d.policy, needs: "edit policies"}
	switch {
	case newest == nil:
		text, err := withoutVersion(d)
		if err != nil {
			return err
		}
		ready = new(policyVersion)
		change.Action, change.Details = "create", []string{textcheck.Count(checked.Rules, "rule"), textcheck.Count(checked.Tests, "test")}
		change.do = func(ctx context.Context) error {
			return p.patiently(ctx, http.MethodPost, p.console("policies"), text, ready)
		}
	case newest.equals(checked):
	default:
		all, err := compareDocuments(newest, checked.Document)
		if err != nil {
			return err
		}
		patch, err := patchOf(d)
		if err == nil {
			patch, err = withMember(patch, "policy_digest", newest.Digest)
		}
		if err == nil {
			patch, err = withMember(patch, "version", newest.Version)
		}
		if err != nil {
			return err
		}
		ready = new(policyVersion)
		change.Action = "change"
		for _, one := range all {
			change.Details = append(change.Details, textcheck.Printable(one.Member)+" "+one.Change)
		}
		if newest.State == "draft" {
			change.Details = append(change.Details, fmt.Sprintf("replaces the draft, version %d", newest.Version))
		}
		change.do = func(ctx context.Context) error {
			return p.patiently(ctx, http.MethodPatch, p.console("policies", d.policy), patch, ready)
		}
	}
	if change.do != nil {
		p.add(change)
	}
	if !enforced || change.do == nil && newest.State == "active" {
		return nil
	}
	activation := step{Kind: "policy", Name: d.policy, Action: "activate", needs: "edit policies"}
	if replaces != "" {
		activation.Details = append(activation.Details, replaces)
	}
	if change.do != nil && p.organization.TwoPerson {
		activation.Details = append(activation.Details, "by another account, because of the two-person rule")
	}
	activation.do = func(ctx context.Context) error {
		body := map[string]any{"version": ready.Version, "policy_digest": ready.Digest}
		return p.patiently(ctx, http.MethodPost, p.console("policies", d.policy, "activate"), body, nil)
	}
	*last = append(*last, activation)
	return nil
}

// equals reports whether a version is what a checked document would be.
func (v *policyVersion) equals(c checkedDocument) bool {
	var written policyVersion
	if err := json.Unmarshal(c.Document, &written); err != nil {
		return false
	}
	return written.Name == v.Name && written.Default == v.Default && bytes.Equal(written.Rules, v.Rules) && bytes.Equal(written.Tests, v.Tests)
}
