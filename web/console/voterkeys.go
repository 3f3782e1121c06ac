package console

import (
	"net/url"

	"github.com/agentledger/agentledger/web/screen"
)

const voterKeyCalls = "/v1/console/voter-keys"

// voterKey is a passkey that signs a member's votes, as the interface shows it.
type voterKey struct {
	CredentialID string `json:"credential_id"`
	Thumbprint   string `json:"thumbprint"`
	RegisteredAt string `json:"registered_at"`
	ConsentBy    string `json:"consent_by"` // "": without the consent of another passkey
	UsedAt       string `json:"used_at"`
}

// readVoterKeys returns all voter keys of an account in the organization.
func readVoterKeys(r *screen.Request, account string) (all []voterKey, err error) {
	query := url.Values{"account_id": {account}}
	for {
		var found struct {
			Keys []voterKey `json:"voter_keys"`
			Next string     `json:"next"`
		}
		if err := r.Read(voterKeyCalls, query, &found); err != nil {
			return nil, err
		}
		all = append(all, found.Keys...)
		if found.Next == "" {
			return all, nil
		}
		query.Set("after", found.Next)
	}
}
