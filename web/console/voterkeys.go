package console

import (
	"net/url"

	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

const voterKeyCalls = "/v1/console/voter-keys"

// readVoterKeys returns all voter keys of an account in the organization.
func readVoterKeys(r *page.Request, account string) (all []wire.VoterKey, err error) {
	query := url.Values{"account_id": {account}}
	for {
		var found wire.VoterKeys
		if err := r.Read(voterKeyCalls, query, &found); err != nil {
			return nil, err
		}
		all = append(all, found.Keys...)
		if found.Next == "" {
			return all, nil
		}
		query.Set("after", string(found.Next))
	}
}
