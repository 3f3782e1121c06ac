package sysevent

import "context"

// credentialKey is the key of WithCredential's value.
type credentialKey struct{}

// WithCredential returns a context for a call that a program makes on behalf of a user, with a credential of that user.
// The statements of the call name both. Records name only the user, because the rules about who decides are about
// users.
func WithCredential(ctx context.Context, credential string) context.Context {
	return context.WithValue(ctx, credentialKey{}, credential)
}

// principalFor returns the principal of the statements of a call.
func principalFor(ctx context.Context, principal string) string {
	credential, _ := ctx.Value(credentialKey{}).(string)
	if credential == "" || principal == Operator {
		return principal
	}
	return principal + "/" + credential
}
