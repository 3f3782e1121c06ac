package main

import (
	"runtime/debug"

	"github.com/agentledger/agentledger/client"
)

type versionCommand struct{}

// versionOutput is the JSON output of version.
type versionOutput struct {
	Version        string `json:"version"`
	Go             string `json:"go"`
	ServiceVersion string `json:"service_version"`
}

func (versionCommand) Run(s *streams) error {
	out := versionOutput{Version: "unknown", ServiceVersion: client.ServiceVersion}
	if info, ok := debug.ReadBuildInfo(); ok {
		out.Version, out.Go = info.Main.Version, info.GoVersion
	}
	if s.json {
		return s.printJSON(out)
	}
	return s.printLine("aps %s (%s), for Service-Version %s", out.Version, out.Go, out.ServiceVersion)
}
