// Command aps is for agents, auditors and monitors of an agentledger service: it generates keys, signs and sends events,
// requests decisions, and verifies the public log.
//
// Invariants:
//   - Exit code 0: success. Exit code 1: the service refused something or a proof is wrong. Exit code 2: unknown, because of
//     wrong usage, an unreadable file or an unreachable service. evaluate exits with 3 for deny and 4 for an obligation,
//     and apply --plan with 3 for changes.
//   - Secrets are read from files and the environment and are never printed, except by keygen.
//   - Results go to standard output, everything else to standard error.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/agentledger/agentledger/internal/secret"
)

func main() {
	secret.ProtectProcess() // started programs must not read the ingest key from /proc
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	err := loadEnvFile()
	if err == nil {
		err = runProgram(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	}
	os.Exit(printError(os.Stderr, err))
}
