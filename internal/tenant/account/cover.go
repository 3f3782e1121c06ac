package account

import "slices"

// permissions returns all permissions.
func permissions() []Permission {
	return []Permission{Read, ReadApprovalPayloads, ReadPayloads, ReadAudit, TryPolicies, EditPolicies, Vote, Manage,
		RevokeKeys, Invite, ChangeMembers, UseTokens, Own}
}

// ForTokens reports whether an API token may have the permission. The others require a person: votes, members,
// tokens, and everything reserved for owners.
func (p Permission) ForTokens() bool {
	switch p {
	case Read, ReadApprovalPayloads, ReadPayloads, ReadAudit, TryPolicies, EditPolicies, Manage, RevokeKeys:
		return true
	}
	return false
}

// Covers reports whether a role has each permission of another one.
func (r Role) Covers(other Role) bool {
	beyond := func(p Permission) bool { return other.May(p) && !r.May(p) }
	return other.Valid() && !slices.ContainsFunc(permissions(), beyond)
}
