package main

import (
	"context"

	"github.com/agentledger/agentledger/cmd/agentledger/demo"
	"github.com/agentledger/agentledger/internal/config"
)

// demoCommand shows what the service is for: see package demo.
type demoCommand struct {
	Once   bool   `help:"Exit after the checks, with status 0 only if all passed."`
	Listen string `help:"Listening address of a single process." default:"127.0.0.1:0" type:"listen"`
	Nodes  int    `help:"Run 2 to 9 nodes on a PostgreSQL server that the demo starts, and kill one." default:"1"`
	config.Logging
}

// Run plays the demo in a temporary folder, which it removes.
func (c demoCommand) Run(ctx context.Context, out terminal) error {
	passed, err := demo.Play(ctx, demo.Options{Nodes: c.Nodes, Once: c.Once, Listen: c.Listen, LogLevel: c.LogLevel,
		LogFormat: c.LogFormat, Out: out.stdout, Errors: out.stderr})
	if err == nil && !passed {
		return errFound
	}
	return err
}
