package servicetest

import (
	"encoding/base64"
	"encoding/json"
	"net/http"

	"github.com/agentledger/agentledger/internal/test/passkeytest"
)

// Voter is a person with a passkey.
type Voter struct {
	*Person
	Key *passkeytest.Authenticator
}

// AddPasskey gives the account of a person a passkey, which ends the account's other sessions.
func (p *Person) AddPasskey(name string) *Voter {
	s := p.service
	s.Helper()
	key := passkeytest.New(s.TB, s.URL)
	var begun json.RawMessage
	p.Call(http.MethodPost, "/v1/id/account/passkeys/begin", nil, &begun)
	p.Call(http.MethodPost, "/v1/id/account/passkeys/finish",
		map[string]any{"name": name, "credential": json.RawMessage(key.Create(begun))}, nil)
	return &Voter{p, key}
}

// Credential returns the id of the passkey in base64url.
func (v *Voter) Credential() string { return base64.RawURLEncoding.EncodeToString(v.Key.Credential) }

// Register registers the passkey as a voter key with the consent of another one; nil is none.
func (v *Voter) Register(by *Voter) {
	v.service.Helper()
	var o struct {
		Time       string          `json:"time"`
		Possession json.RawMessage `json:"possession"`
		Consent    json.RawMessage `json:"consent"`
	}
	v.Call(http.MethodPost, "/v1/console/voter-keys/options", map[string]any{"credential_id": v.Credential()}, &o)
	body := map[string]any{"credential_id": v.Credential(), "possession": v.Key.Assert(o.Possession, o.Time)}
	if by != nil {
		body["consent"] = by.Key.Assert(o.Consent, o.Time)
	}
	v.Call(http.MethodPost, "/v1/console/voter-keys", body, nil)
}

// Vote casts a signed vote.
func (v *Voter) Vote(a Asked, vote, comment string) {
	v.service.Helper()
	ballot := map[string]any{"vote": vote, "action_digest": a.ActionDigest, "comment": comment}
	path := "/v1/console/approvals/" + a.ID + "/votes"
	var o struct {
		Time      string          `json:"time"`
		PublicKey json.RawMessage `json:"public_key"`
	}
	v.Call(http.MethodPost, path+"/options", ballot, &o)
	ballot["assertion"] = v.Key.Assert(o.PublicKey, o.Time)
	v.Call(http.MethodPost, path, ballot, nil)
}
