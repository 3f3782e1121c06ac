package console

import (
	"slices"
	"strings"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

const webhooksPage = "/console/webhooks"

func (p *pages) webhookScreens() []page.Screen {
	return []page.Screen{
		{Pattern: webhooksPage, Query: []string{"after"},
			Views: p.views, Name: "webhooks", Title: "Webhooks", Show: p.listWebhooks,
			Forms: map[string]page.Form{"create": p.createWebhook, "replay": p.replayDelivery, "rotate": p.rotateCallbackKey}},
		{Pattern: webhooksPage + "/{webhook}", Views: p.views, Name: "webhook", Show: p.showWebhook,
			Forms: map[string]page.Form{"change": p.changeWebhook, "test": p.testWebhook,
				"switch-on": p.switchWebhookOn, "switch-off": p.switchWebhookOff, "delete": p.deleteWebhook,
				"rotate": p.rotateWebhook, "slack-on": p.setSlackSecret, "slack-off": p.removeSlackSecret}},
	}
}

// webhooksView is the content of the list.
type webhooksView struct {
	wire.Webhooks
	Next      string // address of the next page
	Form      endpointForm
	MayManage bool
}

// TitleOf returns the title of a receiver, or its ID if it is gone.
func (v webhooksView) TitleOf(id wire.Text) string {
	for _, e := range v.Endpoints {
		if e.EndpointID == string(id) {
			return e.Title()
		}
	}
	return string(id)
}

func (p *pages) listWebhooks(r *page.Request) (any, error) {
	var v webhooksView
	var err error
	v.Webhooks, err = visitOf(r).Console.ListWebhooks(r.Context(), visitOf(r).caller, r.PageQuery())
	v.Next, v.MayManage = r.NextPage(v.Webhooks.Next), r.Person.May("manage")
	v.Form = newEndpointForm(r, "create", wire.Endpoint{Format: "standard", Events: []string{"approval.*"}})
	return v, err
}

// endpointForm contains the choices of an endpoint's form.
type endpointForm struct {
	wire.Endpoint
	Do       string // value of the form's button
	Families []noticeChoice
	Others   string // types outside of the families, separated by spaces
	Formats  []page.Option
}

// noticeChoice is a family of notices.
type noticeChoice struct {
	Value, Title string
	Checked      bool
}

// newEndpointForm returns the form for an endpoint. A refused form with that name shows its own choices again.
func newEndpointForm(r *page.Request, name string, e wire.Endpoint) endpointForm {
	wanted := e.Events
	if r.Form.Get("do") == name {
		wanted = slices.Concat(r.Form["events"], strings.Fields(r.Form.Get("types")))
	}
	f := endpointForm{Endpoint: e, Do: name, Families: []noticeChoice{
		{Value: "approval.*", Title: "Approvals: requested, decided, used, ended"},
		{Value: "run.*", Title: "Workflow runs: started, ended"},
		{Value: "event.*", Title: "Events: each one that is stored"},
		{Value: "decision.*", Title: "Decisions: denied, and stricter than declared"},
		{Value: "plan.*", Title: "Plan: 80 and 100 % of the month's events"},
		{Value: "ledger.*", Title: "Ledger: a fault"},
	}, Formats: []page.Option{{Value: "standard", Title: "standard (Standard Webhooks, signed)"},
		{Value: "slack", Title: "slack (a text; it shows payloads to the readers of the channel)"}}}
	var others []string
	for _, kind := range wanted {
		at := slices.IndexFunc(f.Families, func(c noticeChoice) bool { return c.Value == kind })
		if at >= 0 {
			f.Families[at].Checked = true
		} else {
			others = append(others, kind)
		}
	}
	f.Others = strings.Join(others, " ")
	return f
}

// ToolLines returns the tool patterns, one per line.
func (f endpointForm) ToolLines() string { return strings.Join(f.Tools, "\n") }

// AgentList returns the agent IDs, separated by spaces.
func (f endpointForm) AgentList() string {
	var list []string
	for _, a := range f.Agents {
		list = append(list, string(a))
	}
	return strings.Join(list, " ")
}

// newEndpoint returns the endpoint that a form describes.
func newEndpoint(r *page.Request) api.NewEndpoint {
	agents := []id.Agent{}
	for _, agent := range strings.Fields(r.Value("agents")) {
		agents = append(agents, id.Agent(agent))
	}
	return api.NewEndpoint{Name: new(r.Value("name")), URL: new(r.Value("url")),
		Format: new(webhook.Format(r.Value("format"))),
		Events: new(slices.Concat([]string{}, r.Form["events"], strings.Fields(r.Value("types")))),
		Tools:  new(slices.Concat([]string{}, strings.Fields(r.Value("tools")))), Agents: &agents}
}

func (p *pages) createWebhook(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	made, err := v.Console.CreateEndpoint(r.Context(), v.caller, newEndpoint(r))
	if err != nil {
		return page.Outcome{}, err
	}
	return page.ShowOnce(p.views, "newsecret", "The new receiver", made), nil
}

// rotateWebhook generates a new secret and a new key for the endpoint. The former ones also sign for a day.
func (p *pages) rotateWebhook(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	rotated, err := v.Console.RotateEndpoint(r.Context(), v.caller, r.PathParameter("webhook"), api.KeyRotation{})
	if err != nil {
		return page.Outcome{}, err
	}
	return page.ShowOnce(p.views, "newsecret", "The new secret", rotated), nil
}

// rotateCallbackKey generates a new callback key for the organization. The former one also signs for a day.
func (p *pages) rotateCallbackKey(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	_, err := v.Console.RotateCallbackKey(r.Context(), v.caller, api.KeyRotation{})
	return page.GoTo(r.Address(webhooksPage), "callback-key-rotated"), err
}

func (p *pages) replayDelivery(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	err := v.Console.ReplayDelivery(r.Context(), v.caller, r.Value("delivery"))
	return page.GoTo(r.Address(webhooksPage), "delivery-replayed"), err
}

// webhookView is the content of an endpoint's page.
type webhookView struct {
	Form      endpointForm
	Attempts  []wire.Attempt
	MayManage bool

	SlackURL      string // where the Slack app sends its requests; "" for another format
	MayAllowVotes bool   // from Slack
}

// showWebhook shows an endpoint with its attempts, of which the interface keeps 50.
func (p *pages) showWebhook(r *page.Request) (any, error) {
	e, err := visitOf(r).Console.ShowEndpoint(r.Context(), visitOf(r).caller, r.PathParameter("webhook"))
	if err != nil {
		return nil, err
	}
	found, err := visitOf(r).Console.ListAttempts(r.Context(), visitOf(r).caller, r.PathParameter("webhook"), nil)
	r.Title = e.Title()
	v := webhookView{Form: newEndpointForm(r, "change", e), Attempts: found.Deliveries, MayManage: r.Person.May("manage"),
		MayAllowVotes: r.Person.May("own")}
	if e.Format == "slack" {
		v.SlackURL = strings.TrimSuffix(r.Kit.Public, "/") + "/v1/slack/interactions/" + r.Person.Organization.ID.String()
	}
	return v, err
}

// changeEndpoint changes the endpoint on the page.
func changeEndpoint(r *page.Request, notice string, patch api.EndpointPatch) (page.Outcome, error) {
	v, name := visitOf(r), r.PathParameter("webhook")
	_, err := v.Console.ChangeEndpoint(r.Context(), v.caller, name, patch)
	return page.GoTo(r.Address(webhooksPage, name), notice), err
}

func (p *pages) changeWebhook(r *page.Request) (page.Outcome, error) {
	return changeEndpoint(r, "saved", api.EndpointPatch{NewEndpoint: newEndpoint(r)})
}

func (p *pages) switchWebhookOn(r *page.Request) (page.Outcome, error) {
	return changeEndpoint(r, "webhook-on", api.EndpointPatch{Active: new(true)})
}

func (p *pages) switchWebhookOff(r *page.Request) (page.Outcome, error) {
	return changeEndpoint(r, "webhook-off", api.EndpointPatch{Active: new(false)})
}

func (p *pages) testWebhook(r *page.Request) (page.Outcome, error) {
	v, name := visitOf(r), r.PathParameter("webhook")
	_, err := v.Console.TestEndpoint(r.Context(), v.caller, name)
	return page.GoTo(r.Address(webhooksPage, name), "test-sent"), err
}

func (p *pages) deleteWebhook(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	err := v.Console.DeleteEndpoint(r.Context(), v.caller, r.PathParameter("webhook"))
	return page.GoTo(r.Address(webhooksPage), "webhook-deleted"), err
}
