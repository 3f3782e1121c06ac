package account_test

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/tenant/account"
)

// The complete table of roles and permissions, written a second time.
func TestRolesHaveTheirPermissions(t *testing.T) {
	const header = "owner admin policy_editor approver auditor member"
	table := map[account.Permission]string{
		account.Read:                 "x x x x x x",
		account.ReadPayloads:         "x x - - x -",
		account.ReadApprovalPayloads: "x x - x x -",
		account.ReadAudit:            "x x - - x -",
		account.TryPolicies:          "x x x - - -",
		account.EditPolicies:         "x x x - - -",
		account.SaveViews:            "x x x x - -",
		account.Vote:                 "x x - x - -",
		account.Manage:               "x x - - - -",
		account.RevokeKeys:           "x x - - - -",
		account.Invite:               "x x - - - -",
		account.ChangeMembers:        "x x - - - -",
		account.Leave:                "x x x x x x",
		account.UseTokens:            "x x x x x x",
		account.Own:                  "x - - - - -",
		"":                           "- - - - - -",
		"fly":                        "- - - - - -",
	}
	roles := strings.Fields(header)
	if got := account.Roles(); len(got) != len(roles) {
		t.Fatalf("got %v", got)
	}
	for p, line := range table {
		for i, may := range strings.Fields(line) {
			if got, want := account.Role(roles[i]).May(p), may == "x"; got != want {
				t.Errorf("%s, %q: got %v, want %v", roles[i], p, got, want)
			}
		}
		for _, unknown := range []account.Role{"", "king", "Owner", "owner "} {
			if unknown.May(p) || unknown.Valid() {
				t.Errorf("role %q has %q", unknown, p)
			}
		}
	}
}

// Ending an access never requires an active organization.
func TestPermissionsOfAnInactiveOrganization(t *testing.T) {
	for p, want := range map[account.Permission]bool{
		account.Read: false, account.ReadPayloads: false, account.TryPolicies: false, account.RevokeKeys: false,
		account.ChangeMembers: false, account.EditPolicies: true, account.SaveViews: true, account.Vote: true, account.Manage: true,
		account.Invite: true, account.Own: true,
	} {
		if got := p.NeedsActive(); got != want {
			t.Errorf("%q: got %v, want %v", p, got, want)
		}
	}
}
