package config

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/oidc"
	"github.com/agentledger/agentledger/internal/secret"
)

// openIDSection is the member of the settings file that contains the OpenID providers.
const openIDSection = "openid"

// providerEntry is one provider in the settings file. Its client secret is in a separate file.
type providerEntry struct {
	Name             string `json:"name"`               // part of the callback's path: PUBLIC_URL/v1/id/auth/oidc/NAME/callback
	Issuer           string `json:"issuer"`             // https URL of the provider, as its discovery document contains it
	ClientID         string `json:"client_id"`          // that the provider assigned to the service
	ClientSecretFile string `json:"client_secret_file"` // file of one line; may be "" for a public client
}

// decodeProviders decodes the section "openid" of the settings file and reads the client secrets. It rejects unknown
// members.
func decodeProviders(section any) ([]oidc.Provider, error) {
	text, err := json.Marshal(section)
	if err != nil {
		return nil, fmt.Errorf("openid: %w", err)
	}
	var entries []providerEntry
	if err := json.Unmarshal(text, &entries, json.RejectUnknownMembers(true)); err != nil {
		if name := unknownMember(err); name != "" {
			return nil, unknownSetting("openid.", name, []string{"name", "issuer", "client_id", "client_secret_file"})
		}
		return nil, errors.New("openid must be a list of objects with name, issuer, client_id and client_secret_file")
	}
	providers := make([]oidc.Provider, len(entries))
	for i, e := range entries {
		clientSecret, err := readClientSecret(e.ClientSecretFile)
		if err != nil {
			return nil, fmt.Errorf("openid %q: %w", e.Name, err)
		}
		providers[i] = oidc.Provider{Name: e.Name, Issuer: e.Issuer, ClientID: e.ClientID, ClientSecret: clientSecret}
	}
	return providers, nil
}

// readClientSecret reads the client secret from a file. It returns "" if path is "": a public client has no secret.
func readClientSecret(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return secret.ReadLine(path)
}

// BeforeApply copies the settings without a flag from the file. kong calls it.
func (s *Serve) BeforeApply(f *File) error {
	s.OpenID, s.ACME = f.openID, f.acme
	return s.Tuning.BeforeApply(f)
}

// ProviderNames returns the names of the OpenID providers.
func (s Serve) ProviderNames() []string {
	names := make([]string, len(s.OpenID))
	for i := range s.OpenID {
		names[i] = s.OpenID[i].Name
	}
	return names
}
