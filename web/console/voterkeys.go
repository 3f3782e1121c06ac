package console

import (
	"net/url"

	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// readVoterKeys returns all voter keys of an account in the organization.
func readVoterKeys(r *page.Request, account string) ([]wire.VoterKey, error) {
	return allVoterKeys(account, func(query url.Values) (wire.VoterKeys, error) {
		return visitOf(r).Console.ListVoterKeys(r.Context(), visitOf(r).caller, query)
	})
}

// allVoterKeys returns the voter keys of an account from all pages of a list.
func allVoterKeys(account string, list func(query url.Values) (wire.VoterKeys, error)) (all []wire.VoterKey, err error) {
	query := url.Values{"account_id": {account}}
	for {
		found, err := list(query)
		if err != nil {
			return nil, err
		}
		all = append(all, found.Keys...)
		if found.Next == "" {
			return all, nil
		}
		query.Set("after", string(found.Next))
	}
}
