package org

import (
	"context"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
)

// signInPasskey requires a passkey. signInProvider is the prefix of the name of an OpenID provider.
const (
	signInPasskey  = "passkey"
	signInProvider = "oidc:"
)

// CheckSignIn returns fault.Invalid for a required sign-in method that the service does not have. "" requires nothing.
func (o *Orgs) CheckSignIn(required string) error {
	if required == "" || required == signInPasskey {
		return nil
	}
	name, isProvider := strings.CutPrefix(required, signInProvider)
	if isProvider && slices.Contains(o.providers, name) {
		return nil
	}
	return fault.New(fault.Invalid,
		"sign_in/require must be passkey, or oidc: and the name of a provider of the service")
}

// SignIn returns the sign-in method that an organization requires, or "". It reads the record and not the ledger,
// because sign-ins must work while the ledger can't be read.
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
