// Package ending ends the program when its store does not take it any more.
//
// Invariants:
//
//   - A status of Refused says that the same program with the same settings is of no use for this store until
//     its operator changes something. A service manager that knows it does not start the program again.
package ending

import (
	"log/slog"
	"os"

	"github.com/agentledger/agentledger/cmd/agentledger/datadir"
)

// Exit statuses of a program that failed.
const (
	Failed  = 2
	Refused = 3 // the store does not take this program
)

// Status returns the exit status of a program that failed with an error.
func Status(err error) int {
	if datadir.IsRefusal(err) {
		return Refused
	}
	return Failed
}

// AtOnce returns a function that ends the process because its store can't go on.
func AtOnce(logger *slog.Logger) func(error) {
	return func(err error) {
		reason := "the store is broken: ending at once, so that nothing is acknowledged that may be lost"
		if datadir.IsRefusal(err) {
			reason = "the database takes newer programs only: ending at once, so that nothing is written that " +
				"they can't read"
		}
		logger.Error(reason, "err", err)
		os.Exit(Status(err))
	}
}

// BesideOthers returns a function that ends the process because other processes have begun to serve from its database.
func BesideOthers(logger *slog.Logger) func(error) {
	return func(err error) {
		logger.Error("other processes serve from the database: ending at once, so that nothing more is written", "err", err)
		os.Exit(Status(err))
	}
}
