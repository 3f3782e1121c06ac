package main

import (
	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/internal/programversion"
)

type versionCommand struct{}

// versionOutput is the JSON output of version.
type versionOutput struct {
	Version        string `json:"version"`
	Commit         string `json:"commit,omitzero"`
	Go             string `json:"go"`
	ServiceVersion string `json:"service_version"`
}

func (versionCommand) Run(s *streams) error {
	v := programversion.Read()
	if s.json {
		return s.printJSON(versionOutput{Version: v.Release, Commit: v.Commit, Go: v.Go,
			ServiceVersion: client.ServiceVersion})
	}
	return s.printLine("aps %s, for Service-Version %s", v, client.ServiceVersion)
}
