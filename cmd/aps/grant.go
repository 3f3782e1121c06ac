package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/tlog"
)

type grantCommand struct {
	Verify  grantVerifyCommand  `cmd:"" help:"Verify a grant offline: who signed it, for which action, and whether it is valid now."`
	Receipt grantReceiptCommand `cmd:"" help:"Verify a tool's receipt offline: who signed it, and for which action."`
	Serve   grantServeCommand   `cmd:"" help:"Check the grants of a proxy's requests, as an HTTP service of Envoy's ext_authz filter."`
}

// maxGrant is the maximum size of a grant in bytes.
const maxGrant = tlog.MaxNote

type grantVerifyCommand struct {
	Grant string `arg:"" help:"File with the grant, - for standard input." type:"input" expected:"a file with a grant, or - for standard input"`
	Key   string `required:"" placeholder:"VKEY" help:"Key of the organization's grants, as transparency/keys lists it." type:"vkey"`
	actionFlags
	At string `placeholder:"TIME" help:"Time at which it must be valid, such as 2026-01-31T12:00:00.000Z. Default: now." type:"instant"`
}

// actionFlags name an action by its parts or by its digest.
type actionFlags struct {
	Org     id.Organization  `env:"APS_ORG" placeholder:"UUID" help:"Organization id of the action."`
	Agent   string           `env:"APS_AGENT" placeholder:"ID" help:"Agent that performs the action." type:"agent"`
	Tool    string           `placeholder:"NAME" help:"Tool of the action." type:"tool"`
	Payload commandline.JSON `type:"jsonfile" placeholder:"FILE" help:"Payload of the action, a JSON object: a file, - for standard input, or the object itself. Default: {}."`
	Action  string           `placeholder:"HEX" help:"Digest of the action, instead of the four above." type:"hash"`
}

func (*grantVerifyCommand) Help() string {
	return `Status 0: valid. 1: invalid; the report names the first failed check. 2: can't tell.

Offline verification can't detect a grant that is used twice: ` +
		`a tool that accepts grants must remember their nonces until they expire.`
}

// grantReport is the JSON output of grant verify.
type grantReport struct {
	OK           bool       `json:"ok"`
	Error        string     `json:"error,omitzero"`
	Origin       id.Origin  `json:"origin,omitzero"`
	ApprovalID   string     `json:"approval_id,omitzero"`
	AgentID      id.Agent   `json:"agent_id,omitzero"`
	ActionDigest id.Hash    `json:"action_digest,omitzero"`
	PolicyDigest id.Hash    `json:"policy_digest,omitzero"`
	Nonce        string     `json:"nonce,omitzero"`
	NotBefore    id.Instant `json:"not_before,omitzero"`
	NotAfter     id.Instant `json:"not_after,omitzero"`
}

func (c *grantVerifyCommand) Run(s *streams) error {
	key, err := tlog.ParseVerifierKey(c.Key)
	if err != nil {
		return fmt.Errorf("--key: %w", err)
	}
	now := id.InstantOf(time.Now())
	if c.At != "" {
		if now, err = id.ParseInstant(c.At); err != nil {
			return fmt.Errorf("--at: %w", err)
		}
	}
	action, err := c.digest(s)
	if err != nil {
		return err
	}
	note, err := s.readInput(c.Grant, maxGrant)
	if err != nil {
		return err
	}
	g, bad := grant.Open(note, key)
	if bad == nil {
		bad = g.Check(action, now)
	}
	return c.printOutcome(s, g, bad)
}

// digest returns the digest of the action.
func (c *actionFlags) digest(s *streams) (id.Hash, error) {
	if c.Action != "" {
		digest, err := id.ParseHash(c.Action)
		if err != nil {
			return id.Hash{}, fmt.Errorf("--action: %w", err)
		}
		return digest, nil
	}
	if c.Org == (id.Organization{}) || !event.ValidAgent(c.Agent) || !event.ValidTool(c.Tool) {
		return id.Hash{}, errors.New("no action: set --action, or --org, --agent, --tool and possibly --payload")
	}
	payload, err := c.Payload.Read(s.in, event.DefaultMaxBytes)
	if err != nil {
		return id.Hash{}, err
	}
	a, err := grant.NewAction(c.Org, id.Agent(c.Agent), id.Tool(c.Tool), payload)
	if err != nil {
		return id.Hash{}, fmt.Errorf("--payload: %s", fault.Of(err).Message)
	}
	return a.Digest(), nil
}

func (c *grantVerifyCommand) printOutcome(s *streams, g grant.Grant, bad error) error {
	r := grantReport{
		OK: bad == nil, Origin: g.Origin, ApprovalID: g.Approval, AgentID: g.Agent, ActionDigest: g.ActionDigest,
		PolicyDigest: g.PolicyDigest, NotBefore: g.NotBefore, NotAfter: g.NotAfter,
	}
	if g.Origin != "" {
		r.Nonce = fmt.Sprintf("%x", g.Nonce)
	}
	if bad != nil {
		r.Error = bad.Error()
	}
	var err error
	switch {
	case s.json:
		err = s.printJSON(r)
	case bad == nil:
		err = s.printLine("good: approval %s lets %s do this until %s\nnonce %s: take it once", g.Approval, g.Agent,
			g.NotAfter, r.Nonce)
	}
	if err == nil && bad != nil {
		err = &negative{fmt.Errorf("verify grant: %w", bad)}
	}
	return err
}
