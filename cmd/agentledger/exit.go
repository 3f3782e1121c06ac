package main

import (
	"log/slog"
	"os"

	"github.com/agentledger/agentledger/cmd/agentledger/datadir"
)

// Exit codes of a program that failed.
const (
	exitFailed = 2
	// exitRefused means that this program cannot use the store with these settings until the operator changes something.
	// A service manager that knows the code does not restart the program.
	exitRefused = 3
)

// exitStatus returns the exit code for an error.
func exitStatus(err error) int {
	if datadir.IsRefusal(err) {
		return exitRefused
	}
	return exitFailed
}

// exitAtOnce returns a function that ends the process because its store can no longer be used.
func exitAtOnce(logger *slog.Logger) func(error) {
	return func(err error) {
		reason := "the store is broken: ending at once, so that nothing is acknowledged that may be lost"
		if datadir.IsRefusal(err) {
			reason = "the database accepts only newer programs: ending at once, so that nothing is written that " +
				"they can't read"
		}
		logger.Error(reason, "err", err)
		os.Exit(exitStatus(err))
	}
}

// exitBesideOthers returns a function that ends the process because other processes have started to serve from its
// database.
func exitBesideOthers(logger *slog.Logger) func(error) {
	return func(err error) {
		logger.Error("other processes serve from the database: ending at once, so that nothing more is written", "err", err)
		os.Exit(exitStatus(err))
	}
}
