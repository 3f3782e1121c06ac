package account

import "slices"

// Role determines which calls a member may make (see Permission).
type Role string

const (
	Owner        Role = "owner"
	Admin        Role = "admin"
	PolicyEditor Role = "policy_editor"
	Approver     Role = "approver"
	Auditor      Role = "auditor"
	Member       Role = "member"
)

// Roles returns all roles, from the most to the fewest permissions.
func Roles() []Role { return []Role{Owner, Admin, PolicyEditor, Approver, Auditor, Member} }

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return slices.Contains(Roles(), r) }

// Permission is what a call requires. Routes require a permission and never a role.
type Permission string

// The permissions. Permission.roles lists the roles that have them. Calls that require some of them are rejected
// while the organization is inactive (NeedsActive).
const (
	// Read is for lists, counts, heads, agents, policies, runs and settings, without payloads.
	Read Permission = "read"
	// ReadApprovalPayloads is for the payloads of approvals.
	ReadApprovalPayloads Permission = "read approvals' payloads"
	// ReadPayloads is for envelopes and evidence packs.
	ReadPayloads Permission = "read payloads"
	// ReadAudit is for the list of the server's own events.
	ReadAudit Permission = "read the audit list"
	// Share is for links by which people without an account read a view of acts. Whoever has it may also revoke them.
	Share Permission = "share views"
	// TryPolicies is for simulations, which change nothing.
	TryPolicies Permission = "try policies"
	// EditPolicies is for drafts of policies and their activation.
	EditPolicies Permission = "edit policies"
	// SaveViews is for saving and removing searches of acts that the organization shares. Roles that change nothing else
	// of the organization do not have it.
	SaveViews Permission = "save views"
	// Vote is for voting on approvals and revoking them.
	Vote Permission = "vote"
	// Manage is for agents, keys, webhooks, witnesses and the organization's settings. Only a role with it sees the
	// addresses of receivers and witnesses, because an address may contain a secret.
	Manage Permission = "manage"
	// RevokeKeys is for retiring and revoking keys. A leaked key must be revocable at any time.
	RevokeKeys Permission = "revoke keys"
	// Invite is for inviting new members.
	Invite Permission = "invite"
	// ChangeMembers is for changing roles and for suspending and removing members. It must be possible to end a
	// person's access at any time.
	ChangeMembers Permission = "change members"
	// Leave is for ending what the member has in the organization: the membership, which is rejected only for the last
	// owner, and deputyships.
	Leave Permission = "leave"
	// UseTokens is for the member's own API tokens.
	UseTokens Permission = "use tokens"
	// Own is for erasure, retention, legal hold, sign-in rules, the two-person rule for policies, and the memberships
	// of owners.
	Own Permission = "own"

	// SignedVote is Vote for a call that may contain its own proof of presence, which its handler checks.
	SignedVote Permission = "vote with a signature"
)

// roles returns the roles that have a permission. This is the only such table.
func (p Permission) roles() []Role {
	switch p {
	case Read, Leave, UseTokens:
		return Roles()
	case ReadApprovalPayloads:
		return []Role{Owner, Admin, Approver, Auditor}
	case ReadPayloads, ReadAudit, Share:
		return []Role{Owner, Admin, Auditor}
	case TryPolicies, EditPolicies:
		return []Role{Owner, Admin, PolicyEditor}
	case SaveViews:
		return []Role{Owner, Admin, PolicyEditor, Approver}
	case Vote, SignedVote:
		return []Role{Owner, Admin, Approver}
	case Manage, RevokeKeys, Invite, ChangeMembers:
		return []Role{Owner, Admin}
	case Own:
		return []Role{Owner}
	}
	return nil
}

// May reports whether a role has a permission. No role has an unknown permission.
func (r Role) May(p Permission) bool { return slices.Contains(p.roles(), r) }

// Permissions returns the permissions of a role.
func (r Role) Permissions() []Permission {
	return slices.DeleteFunc(permissions(), func(p Permission) bool { return !r.May(p) })
}

// NeedsActive reports whether calls with a permission are rejected while the operator has deactivated the organization.
func (p Permission) NeedsActive() bool {
	switch p {
	case EditPolicies, SaveViews, Vote, SignedVote, Manage, Invite, Own:
		return true
	}
	return false
}

// NeedsFactor reports whether calls with a permission require a recently proved factor (Session.CheckFactor).
func (p Permission) NeedsFactor() bool { return p == Vote || p == Own }
