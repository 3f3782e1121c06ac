package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/cmd/aps/acts"
	"github.com/agentledger/agentledger/cmd/aps/people"
	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/monitor"
)

// Exit codes.
const (
	statusOK     = 0
	statusNo     = 1 // refused by the service, or proven wrong
	statusUnable = 2 // unknown

	statusPlanned = 3 // apply --plan printed changes
)

// decided is the decision of evaluate, which has been printed already. The exit code is 3 for deny and 4 for
// allow_with_obligation.
type decided int

func (decided) Error() string { return "the action is not allowed as it is" }

// negative is a negative result: the program exits with statusNo.
type negative struct{ err error }

func (n *negative) Error() string { return n.err.Error() }
func (n *negative) Unwrap() error { return n.err }

// unable is an error that neither proves nor disproves anything: the program exits with statusUnable, even if the service
// refused.
type unable struct{ err error }

func (u *unable) Error() string { return u.err.Error() }
func (u *unable) Unwrap() error { return u.err }

// printError prints an error and a hint, and returns the exit code.
func printError(w io.Writer, err error) int {
	if err == nil {
		return statusOK
	}
	if status := decided(0); errors.As(err, &status) {
		return int(status)
	}
	if errors.Is(err, people.ErrPlanned) { // the plan was printed
		return statusPlanned
	}
	if end := (*acts.Exit)(nil); errors.As(err, &end) {
		if end.Message != "" {
			_, _ = fmt.Fprintln(w, textcheck.PrintableLines(end.Message))
		}
		return end.Status
	}
	_, _ = fmt.Fprintln(w, "aps:", textcheck.PrintableLines(err.Error()))
	if h := errorHint(err); h != "" {
		_, _ = io.WriteString(w, commandline.NewScreen(w).Tint("hint: "+textcheck.PrintableLines(h)+"\n"))
	}
	var no *negative
	var open *unable
	if errors.As(err, &no) || isRefusal(err) && !errors.As(err, &open) && !errors.Is(err, people.ErrNotCompared) {
		return statusNo
	}
	return statusUnable
}

// isRefusal reports whether the service refused, documents differ or can't be activated, or calls are not covered.
func isRefusal(err error) bool {
	var answer *client.Error
	var refused *people.Refusal
	return errors.As(err, &answer) && answer.Status/100 == 4 ||
		errors.As(err, &refused) && refused.Status/100 == 4 || errors.Is(err, people.ErrFound) || errors.Is(err, people.ErrUncovered) || errors.Is(err, errWrongRelease)
}

// errorHint returns a hint for the user about an error, or "".
func errorHint(err error) string {
	var answer *client.Error
	var usage *commandline.UsageError
	var network *net.OpError
	var found *monitor.Finding
	switch {
	case errors.As(err, &found):
		return "keep the evidence and the state file as they are, tell others who follow this log, and ask the operator"
	case errors.Is(err, monitor.ErrState):
		return "bring back a copy of the state file, or put it away and start with a new one: that " +
			"reads the log from its beginning, and can't see what was shown before"
	case errors.As(err, &answer):
		return answerHint(answer)
	case errors.As(err, &usage):
		return "aps --help lists the commands, aps COMMAND --help their flags"
	case errors.Is(err, client.ErrNoToken):
		return "set APS_TOKEN (or --token) to an ingest key"
	case errors.As(err, &network):
		return "is the service running, and is --url (or APS_URL) its address?"
	}
	return ""
}

func answerHint(e *client.Error) string {
	switch {
	case e.Status == http.StatusUnauthorized:
		return "APS_TOKEN (or --token) must be an ingest key that is valid now"
	case e.Status == http.StatusForbidden:
		return "APS_ORG (or --org) must be the organization of the ingest key, and the key must be good for this agent"
	case e.Message == "Unknown signing key":
		return "register the public key for this agent; aps keygen --from FILE --proof makes what that takes"
	case e.Code == "plan_limit":
		return "the organization's events of this month are used up; run again later, what is stored is not sent twice"
	case e.Status == http.StatusServiceUnavailable:
		return "run again later; what is stored is not sent twice if the events were signed before " +
			"(aps sign, aps replay)"
	}
	return ""
}
