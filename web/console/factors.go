package console

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

const factorsPath = "/account/factors"

// factorsView is the content of the page of passkeys and recovery codes.
type factorsView struct {
	Passkeys  []passkey
	CodesLeft int
	MayVote   bool
	Back      string // the page that asked for a voter key; "" if none
}

// passkey is a passkey of the account on a page.
type passkey struct {
	wire.Passkey
	VotesSince wire.Time // when it was registered to sign votes in the organization; 0 if it does not sign votes
}

func (p *pages) showFactors(r *page.Request) (any, error) {
	found, err := visitOf(r).Identity.ListPasskeys(r.Context(), visitOf(r).person)
	if err != nil {
		return nil, err
	}
	v := factorsView{Passkeys: make([]passkey, len(found.Passkeys)), CodesLeft: found.CodesLeft}
	for i := range found.Passkeys {
		v.Passkeys[i].Passkey = found.Passkeys[i]
	}
	if v.MayVote = r.Person.May("vote"); !v.MayVote {
		return v, nil
	}
	if back := r.ReturnPath(); strings.HasPrefix(back, r.Address("/console/approvals")+"/") {
		v.Back = back
	}
	keys, err := readVoterKeys(r, r.Person.Account.ID)
	for _, k := range keys {
		credential := k.CredentialID.String()
		for i := range v.Passkeys {
			if v.Passkeys[i].CredentialID == credential {
				v.Passkeys[i].VotesSince = wire.Time(k.RegisteredAt)
			}
		}
	}
	return v, err
}

// retireVoter stops a passkey from signing votes in the organization.
func (p *pages) retireVoter(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	err := v.changeOrganization(r, func() error {
		return v.Console.RetireVoterKey(r.Context(), v.caller, r.Value("credential_id"))
	})
	return page.GoTo(r.Address(factorsPath), "saved"), err
}

// newPasskeyView is the content of the page on which the browser creates a passkey.
type newPasskeyView struct {
	Name    string
	Options string // the service's challenge as JSON
	Action  string
}

// preparePasskey requests a challenge, which requires a recent step-up. The browser answers it on the page that
// follows.
func (p *pages) preparePasskey(r *page.Request) (page.Outcome, error) {
	name := r.Value("passkey_name")
	if name == "" {
		return page.Outcome{}, fault.New(fault.Invalid, "Give the passkey a name")
	}
	challenge, err := visitOf(r).Identity.BeginPasskey(r.Context(), visitOf(r).person)
	if err != nil {
		return page.Outcome{}, err
	}
	options, err := json.Marshal(challenge)
	if err != nil {
		return page.Outcome{}, err
	}
	return page.ShowOnce(p.views, "newpasskey", "A new passkey",
		newPasskeyView{Name: name, Options: string(options), Action: r.Address(factorsPath)}).
		WithScript("newpasskey.js", "passkeyform.js", "passkey.js"), nil
}

func (p *pages) addPasskey(r *page.Request) (page.Outcome, error) {
	made, err := newPasskey(r, "Passkey")
	if err != nil {
		return page.Outcome{}, err
	}
	if made == nil {
		return page.Outcome{}, fault.New(fault.Invalid, "The browser has created no passkey")
	}
	_, err = visitOf(r).Identity.AddPasskey(r.Context(), visitOf(r).person, *made)
	return page.GoTo(r.Address(factorsPath), "passkey-added"), err
}

// passkeyField is the hidden field in which a script submits the browser's answer to a challenge.
const passkeyField = "passkey"

// newPasskey returns the passkey that a script put into the form, or nil. name is used for a new passkey if the form
// contains no name. It returns fault.Invalid if the field is not JSON.
func newPasskey(r *page.Request, name string) (*identity.NewPasskey, error) {
	text := r.Form.Get(passkeyField)
	if text == "" {
		return nil, nil
	}
	made := identity.NewPasskey{Name: cmp.Or(r.Value("passkey_name"), name)}
	if !jsontext.Value(text).IsValid() {
		return nil, fault.New(fault.Invalid, "The passkey can't be read")
	}
	// As in a call, the credential is strict JSON.
	err := edge.DecodeStrict([]byte(`{"credential":`+text+`}`), &made)
	return &made, err
}

func (p *pages) removePasskey(r *page.Request) (page.Outcome, error) {
	err := visitOf(r).Identity.RemovePasskey(r.Context(), visitOf(r).person, r.Value("passkey_id"))
	return page.GoTo(r.Address(factorsPath), "passkey-removed"), err
}

// makeCodes shows new recovery codes once.
func (p *pages) makeCodes(r *page.Request) (page.Outcome, error) {
	made, err := visitOf(r).Identity.MakeRecoveryCodes(r.Context(), visitOf(r).person)
	if err != nil {
		return page.Outcome{}, err
	}
	return page.ShowOnce(p.views, "recoverycodes", "Your recovery codes", made.Codes), nil
}
