// Command aps is for agents, auditors and monitors of an agentledger service: it
// makes keys, signs and sends events, asks for decisions, and verifies the public log.
//
// Invariants:
//   - The exit status is 0 when what was asked for is so, 1 when the service
//     refused something or a proof is wrong, 2 when that can't be told: bad
//     usage, a file that can't be read, a service that can't be reached. evaluate
//     ends with 3 for deny and with 4 for an obligation.
//   - Secrets are read from files and the environment and are never printed. The
//     exception is keygen, whose result is one.
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
	secret.ProtectProcess() // programs that are started must not read the ingest key from /proc
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(printError(os.Stderr, runProgram(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)))
}
