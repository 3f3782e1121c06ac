package console

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/web/screen"
)

const (
	passkeyCalls = "/v1/id/account/passkeys"
	factorsPath  = "/account/factors"
)

// factorsView is the content of the page of passkeys and recovery codes.
type factorsView struct {
	Passkeys  []passkey `json:"passkeys"`
	CodesLeft int       `json:"recovery_codes_left"`
	MayVote   bool      `json:"-"`
	Back      string    `json:"-"` // the page that asked for a voter key, "" for none
}

// passkey is a passkey of the account.
type passkey struct {
	ID         string `json:"passkey_id"`
	Name       string `json:"name"`
	CreatedAt  string `json:"created_at"`
	UsedAt     string `json:"used_at"`
	BackedUp   bool   `json:"backed_up"`
	Credential string `json:"credential_id"`

	VotesSince string `json:"-"` // when it was registered to sign votes in the organization; "": it signs none
}

func (p *pages) showFactors(r *screen.Request) (any, error) {
	var v factorsView
	if err := r.Read(passkeyCalls, nil, &v); err != nil || !r.Person.May("vote") {
		return v, err
	}
	v.MayVote = true
	if back := r.ReturnPath(); strings.HasPrefix(back, r.Address("/console/approvals")+"/") {
		v.Back = back
	}
	keys, err := readVoterKeys(r, r.Person.Account.ID)
	for _, k := range keys {
		for i := range v.Passkeys {
			if v.Passkeys[i].Credential == k.CredentialID {
				v.Passkeys[i].VotesSince = k.RegisteredAt
			}
		}
	}
	return v, err
}

// retireVoter lets a passkey sign no more votes in the organization.
func (p *pages) retireVoter(r *screen.Request) (screen.Outcome, error) {
	err := r.Change(http.MethodDelete, voterKeyCalls+"/"+url.PathEscape(r.Value("credential_id")), nil, nil)
	return screen.GoTo(r.Address(factorsPath), "saved"), err
}

// newPasskeyView is the content of the page on which the browser makes a passkey.
type newPasskeyView struct {
	Name    string
	Options string // of the service's challenge, in JSON
	Action  string
}

// preparePasskey asks for a challenge, which needs a fresh proof. The browser answers it on the page that is shown.
func (p *pages) preparePasskey(r *screen.Request) (screen.Outcome, error) {
	name := r.Value("passkey_name")
	if name == "" {
		return screen.Outcome{}, fault.New(fault.Invalid, "Give the passkey a name")
	}
	var options jsontext.Value
	if err := r.Change(http.MethodPost, passkeyCalls+"/begin", nil, &options); err != nil {
		return screen.Outcome{}, err
	}
	v := newPasskeyView{Name: name, Options: string(options), Action: r.Address(factorsPath)}
	return screen.ShowOnce(p.views, "newpasskey", "A new passkey", v).
		WithScript("newpasskey.js", "passkeyform.js", "passkey.js"), nil
}

func (p *pages) addPasskey(r *screen.Request) (screen.Outcome, error) {
	made, err := r.Passkey("Passkey")
	if err != nil {
		return screen.Outcome{}, err
	}
	if made == nil {
		return screen.Outcome{}, fault.New(fault.Invalid, "The browser has made no passkey")
	}
	err = r.Change(http.MethodPost, passkeyCalls+"/finish", made, nil)
	return screen.GoTo(r.Address(factorsPath), "passkey-added"), err
}

func (p *pages) removePasskey(r *screen.Request) (screen.Outcome, error) {
	err := r.Change(http.MethodDelete, passkeyCalls+"/"+url.PathEscape(r.Value("passkey_id")), nil, nil)
	return screen.GoTo(r.Address(factorsPath), "passkey-removed"), err
}

// makeCodes shows new recovery codes this once.
func (p *pages) makeCodes(r *screen.Request) (screen.Outcome, error) {
	var made struct {
		Codes []string `json:"recovery_codes"`
	}
	if err := r.Change(http.MethodPost, "/v1/id/account/recovery-codes", nil, &made); err != nil {
		return screen.Outcome{}, err
	}
	return screen.ShowOnce(p.views, "recoverycodes", "Your recovery codes", made.Codes), nil
}
