package sysevent

import "context"

// credentialKey is the key of WithCredential's value.
type credentialKey struct{}

// WithCredential returns a context for a call that a program makes for a person, with a credential
// of that person. The statements of the call name both. Records name the person alone, because the
// rules about who decides on what are about people.
func WithCredential(ctx context.Context, credential string) context.Context {
	return context.WithValue(ctx, credentialKey{}, credential)
}

// principalOf returns the principal of the statements of a call.
func principalOf(ctx context.Context, principal string) string {
	credential, _ := ctx.Value(credentialKey{}).(string)
	if credential == "" || principal == Operator {
		return principal
	}
	return principal + "/" + credential
}
