package page

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
)

// passkeyField is the hidden field into which a script puts the browser's answer to a challenge.
const passkeyField = "passkey"

// Passkey is a new passkey, or one of the account, as the interface takes it.
type Passkey struct {
	Name       string         `json:"name,omitzero"`
	Credential jsontext.Value `json:"credential"`
}

// Passkey returns the passkey that a script put into the form, nil for none. Name is the one that a new passkey gets
// when the form has none for it. A text that is no JSON is fault.Invalid.
func (r *Request) Passkey(name string) (*Passkey, error) {
	text := r.Form.Get(passkeyField)
	if text == "" {
		return nil, nil
	}
	credential := jsontext.Value(text)
	if !credential.IsValid() {
		return nil, fault.New(fault.Invalid, "The passkey can't be read")
	}
	if given := r.Value("passkey_name"); given != "" {
		name = given
	}
	return &Passkey{Name: name, Credential: credential}, nil
}
