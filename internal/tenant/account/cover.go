package account

import "slices"

// permissions returns all permissions.
func permissions() []Permission {
	return []Permission{Read, ReadApprovalPayloads, ReadPayloads, ReadAudit, Share, TryPolicies, EditPolicies, SaveViews, Vote, Manage,
		RevokeKeys, Invite, ChangeMembers, UseTokens, Own}
}

// ForTokens reports whether an API token may have the permission. The others require a person: votes, members,
// tokens, links, and everything reserved for owners.
func (p Permission) ForTokens() bool {
	switch p {
	case Read, ReadApprovalPayloads, ReadPayloads, ReadAudit, TryPolicies, EditPolicies, SaveViews, Manage, RevokeKeys:
		return true
	}
	return false
}

// ForDeputies reports whether a member has the permission while it votes in place of another member (package member).
func (p Permission) ForDeputies() bool {
	return p == Vote || p == SignedVote || p == ReadApprovalPayloads
}

// WithDeputy returns permissions together with those of a deputy.
func WithDeputy(of []Permission) []Permission {
	return slices.DeleteFunc(permissions(), func(p Permission) bool { return !p.ForDeputies() && !slices.Contains(of, p) })
}

// Covers reports whether a role has each permission of another one.
func (r Role) Covers(other Role) bool {
	beyond := func(p Permission) bool { return other.May(p) && !r.May(p) }
	return other.Valid() && !slices.ContainsFunc(permissions(), beyond)
}
