package org

import (
	"context"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
)

// signInPasskey requires a passkey; signInProvider is before the name of an OpenID provider.
const (
	signInPasskey  = "passkey"
	signInProvider = "oidc:"
)

// CheckSignIn returns fault.Invalid for a required way to sign in that the service does not have.
// The empty way requires nothing.
func (o *Orgs) CheckSignIn(required string) error {
	if required == "" || required == signInPasskey {
		return nil
	}
	name, is := strings.CutPrefix(required, signInProvider)
	if is && slices.Contains(o.providers, name) {
		return nil
	}
	return fault.New(fault.Invalid,
		"sign_in/require must be passkey, or oidc: and the name of a provider of the service")
}

// SignIn returns the way to sign in that an organization requires, "" for none. It reads the
// record and not the ledger, because sign-ins work while the ledger can't be read.
func (o *Orgs) SignIn(ctx context.Context, t id.Tenant) (required string, err error) {
	stored, _, err := o.readRecord(ctx, t)
	if isAbsent(err) {
		return "", errNotFound()
	}
	if err != nil {
		return "", errUnreadable("read settings", err)
	}
	return stored.SignIn, nil
}
