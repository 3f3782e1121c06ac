package console

import (
	"net/url"
	"strings"

	"github.com/agentledger/agentledger/web/page"
)

// names are the display names of accounts.
type names map[string]string

// maxMembers is how many members are read for their names. Others are shown by their account IDs.
const maxMembers = "1000"

// readNames reads the names of the organization's members.
func readNames(r *page.Request) (names, error) {
	found, err := visitOf(r).Identity.ListMembers(r.Context(), visitOf(r).person, url.Values{"limit": {maxMembers}})
	if err != nil {
		return nil, err
	}
	of := make(names, len(found.Members))
	for _, m := range found.Members {
		if of[m.AccountID] = m.Email; m.DisplayName != "" {
			of[m.AccountID] = m.DisplayName + " (" + m.Email + ")"
		}
	}
	return of, nil
}

// Of returns the name of a principal: an account, or an account and its token after a slash.
func (n names) Of(principal string) string {
	account, token, found := strings.Cut(principal, "/")
	name, known := n[account]
	switch {
	case !known:
		return principal
	case found:
		return name + ", token " + token
	}
	return name
}
