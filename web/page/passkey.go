package page

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
)

// passkeyField is the hidden field in which a script submits the browser's answer to a challenge.
const passkeyField = "passkey"

// Passkey is a new or an existing passkey of the account, as the interface accepts it.
type Passkey struct {
	Name       string         `json:"name,omitzero"`
	Credential jsontext.Value `json:"credential"`
}

// Passkey returns the passkey that a script put into the form, or nil. name is used for a new passkey if the form
// contains no name. It returns fault.Invalid if the field is not JSON.
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
