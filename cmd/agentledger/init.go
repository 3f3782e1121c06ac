package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/secret"
	"github.com/agentledger/agentledger/internal/tenant/agent"
)

// initCommand creates an organization in the store of a stopped server, or in a new one.
type initCommand struct {
	config.Store
	config.Identity
	config.Limits
	config.Logging
	config.Tuning `kong:"-"`

	Name          string `help:"Name of the organization." required:""`
	Slug          string `help:"Its public name: a-z, 0-9 and single dashes." required:"" type:"slug"`
	AdminEmail    string `help:"E-mail of its owner." required:"" type:"email"`
	AdminPassword string `help:"Password of an owner without an account; prefer the environment. An owner with an account accepts by signing in." env:"AGENTLEDGER_ADMIN_PASSWORD"`
	Plan          string `help:"Its plan." default:"enterprise" type:"word" expected:"the name of a plan, such as enterprise"`
	KeyFile       string `help:"New file for the agent's key. Default: SLUG-agent.key." placeholder:"FILE" type:"output"`
	Disclosure    string `help:"What public bundles disclose: commitment, record or full." enum:"commitment,record,full" default:"record"`
	JSON          bool   `name:"json" help:"Machine-readable output."`
}

// madeOrganization is the output of init. Its secrets are not stored.
type madeOrganization struct {
	OrganizationID id.Organization `json:"organization_id"`
	Slug           id.Slug         `json:"slug"`
	Origin         id.Origin       `json:"origin"`
	LogKey         string          `json:"log_key"`
	MembershipID   string          `json:"membership_id"`
	Account        string          `json:"account"` // "created" or "known"
	Agent          any             `json:"agent"`
	IngestKey      madeKey         `json:"ingest_key"`
	KeyFile        string          `json:"key_file,omitzero"`

	agent agent.Credentials
}

type madeKey struct {
	KeyID  string `json:"key_id"`
	Secret string `json:"secret"`
}

// Run creates the organization and prints its credentials, which are shown only once.
func (c initCommand) Run(ctx context.Context, out terminal) error {
	settings := config.Serve{Store: c.Store, Identity: c.Identity, Limits: c.Limits, Logging: c.Logging,
		Tuning: c.Tuning}
	if err := errors.Join(settings.RequirePublicURL(), settings.Validate()); err != nil {
		return err
	}
	if c.KeyFile == "" && !c.JSON {
		c.KeyFile = c.Slug + "-agent.key"
	}
	first := provision.FirstAgent{URL: c.PublicURL, KeyFile: c.KeyFile}
	if err := first.CheckKeyFile(); err != nil {
		return err
	}
	m, err := c.makeOrganization(ctx, settings, out)
	if err != nil {
		return err
	}
	if m.KeyFile = c.KeyFile; c.KeyFile != "" {
		if err := first.WriteKeyFile(m.agent.Private); err != nil { // the key is not lost: it is printed
			m.KeyFile, c.JSON = "", true
			out.printProblem(err.Error())
		}
	}
	if c.JSON {
		text, err := json.Marshal(m, jsontext.WithIndent("  "))
		if err == nil {
			_, err = fmt.Fprintf(out.stdout, "%s\n", text)
		}
		return err
	}
	first.Organization, first.Agent, first.Key = m.OrganizationID, m.agent.Agent, m.agent.Key
	first.IngestKey = m.IngestKey.Secret
	_, err = fmt.Fprintf(out.stdout,
		"organization %s (%s)\norigin       %s\nlog key      %s\nagent        %s\nprivate key  in %s\n\n%s"+
			"\nThe ingest key (APS_TOKEN) is shown only once.\n",
		m.OrganizationID, m.Slug, m.Origin, m.LogKey, m.agent.Agent, m.KeyFile, first.Exports())
	return err
}

func (c initCommand) makeOrganization(ctx context.Context, settings config.Serve,
	out terminal) (m madeOrganization, err error) {
	disclosure, err := id.ParseDisclosure(c.Disclosure)
	if err != nil {
		return madeOrganization{}, err
	}
	s, err := openService(ctx, settings, logOnlyObservation(c.Logging.NewLogger(out.stderr)),
		func(err error) { panic(err) })
	if err != nil {
		return madeOrganization{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r, err := s.founder.CreateOrganization(ctx, provision.Request{
		Name: c.Name, Slug: id.Slug(c.Slug), Plan: c.Plan, Disclosure: disclosure, AdminEmail: c.AdminEmail,
		AdminPassword: secret.TrimLineEnd(c.AdminPassword),
	})
	if err != nil {
		return madeOrganization{}, err
	}
	identity := r.State.Identity()
	return madeOrganization{
		OrganizationID: identity.Organization, Slug: r.Slug, Origin: identity.Origin,
		LogKey:       r.State.VerifierKey().String(),
		MembershipID: r.Membership.ID, Account: r.Account(), Agent: r.Agent, agent: r.Agent,
		IngestKey: madeKey{KeyID: r.IngestKey.ID, Secret: r.Token.Reveal()},
	}, nil
}
