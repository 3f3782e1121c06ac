package auditlist

import (
	"context"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/share"
	"github.com/agentledger/agentledger/internal/wire"
)

// name is the name of an account. It is zero if the account no longer exists.
type name struct{ display, email string }

// accountPrefix is the prefix of account IDs.
const accountPrefix = "acc_"

// describeActor describes the principal of an event.
func (d *describer) describeActor(ctx context.Context, principal string) (wire.Actor, error) {
	switch {
	case principal == "":
		return wire.Actor{Type: "unknown"}, nil
	case principal == sysevent.Operator:
		return wire.Actor{Type: "operator"}, nil
	case strings.HasPrefix(principal, share.Prefix):
		return wire.Actor{Type: "share", ID: principal}, nil
	case !strings.HasPrefix(principal, accountPrefix):
		return wire.Actor{Type: "ingest_key", ID: principal}, nil
	}
	who, token, _ := strings.Cut(principal, "/")
	known, err := d.findName(ctx, account.ID(who))
	return wire.Actor{Type: "account", ID: who, Name: known.display, Email: known.email, Token: token}, err
}

// findName returns the name of an account, and reads it once per page.
func (d *describer) findName(ctx context.Context, who account.ID) (name, error) {
	if known, ok := d.names[who]; ok {
		return known, nil
	}
	a, err := d.People.ByID(ctx, who)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return name{}, err
	}
	known := name{a.DisplayName, a.Email}
	d.names[who] = known
	return known, nil
}

// subject returns an actor as the subject of a sentence.
func subject(a wire.Actor) string {
	switch a.Type {
	case "operator":
		return "The operator"
	case "unknown":
		return "Somebody"
	case "share":
		return "The holder of link " + a.ID
	case "ingest_key":
		return "The holder of ingest key " + a.ID
	}
	return name{a.Name, a.Email}.text(a.ID)
}

// text returns a name for a sentence, or the ID of an account that no longer exists.
func (n name) text(who string) string {
	switch {
	case n.email == "":
		return "account " + who
	case n.display == "":
		return n.email
	}
	return n.display + " (" + n.email + ")"
}

// from returns the end of a sentence: where the call came from.
func (a *act) from() string {
	text := ""
	if a.source != nil && a.source.Address.IsValid() {
		text = " from " + a.source.Address.String()
	}
	switch o := a.source; {
	case a.actor.Token != "":
		return text + " with token " + a.actor.Token
	case o == nil:
	case o.Credential == sysevent.BySession && o.ID != "":
		return text + " with session " + o.ID
	case o.Credential == sysevent.BySlack:
		return text + " by Slack user " + o.ID
	case o.Credential == sysevent.ByPlatformSecret:
		return text + " with the platform secret"
	case o.Credential == sysevent.ByCommand:
		return text + " with a command on the machine"
	}
	return text
}

// describeSource describes where a call came from. It returns nil for nil.
func describeSource(s *sysevent.Source) *wire.Source {
	if s == nil {
		return nil
	}
	shown := &wire.Source{Credential: string(s.Credential), ID: s.ID}
	if s.Address.IsValid() {
		shown.Address = s.Address.String()
	}
	return shown
}
