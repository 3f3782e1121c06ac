package main

import (
	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/cmd/aps/people"
	"github.com/agentledger/agentledger/internal/programversion"
)

// releaseVersionCommand is version.
type releaseVersionCommand struct{}

// versionOutput is the JSON output of version.
type versionOutput struct {
	Version        string `json:"version"`
	Commit         string `json:"commit,omitzero"`
	Go             string `json:"go"`
	ServiceVersion string `json:"service_version"`
}

// Run prints the version of this program.
func (releaseVersionCommand) Run(out *people.Terminal) error {
	v := programversion.Read()
	if out.JSON {
		return out.PrintJSON(versionOutput{Version: v.Release, Commit: v.Commit, Go: v.Go,
			ServiceVersion: client.ServiceVersion})
	}
	return out.PrintLine("aps %s, for Service-Version %s", v, client.ServiceVersion)
}
