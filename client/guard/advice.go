package guard

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/agentledger/agentledger/client"
)

// Advise returns one sentence on what to do about an action that did not run because of err. The
// sentence names the setting to change and its owner, or states that the same call can safely be
// repeated. It contains no text of err.
func Advise(err error) string {
	answer, answered := errors.AsType[*client.Error](err)
	_, file := errors.AsType[*fs.PathError](err)
	switch {
	case isFullDisk(err):
		return "Make room on the disk of the journal, then make the same call again."
	case errors.Is(err, ErrJournalDamaged):
		return "Restore the journal from a copy, or move its folder away: then its actions could run again, and its unsent events are lost."
	case answered:
		return adviseOn(answer)
	case errors.Is(err, client.ErrNoToken):
		return "Set the ingest key."
	case errors.Is(err, errNobodyAsked):
		return "Give the ingest key the scope approvals."
	case isWrongAddress(err):
		return "Check the address of the service and its certificate."
	case errors.Is(err, client.ErrAnswer):
		return "Check the address of the service: something else has answered."
	case file:
		return "Look at the folder of the journal, then make the same call again."
	}
	return againLater
}

const againLater = "Make the same call again later."

func isFullDisk(err error) bool {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EROFS} {
		if errors.Is(err, full) {
			return true
		}
	}
	return false
}

func isWrongAddress(err error) bool {
	name, ok := errors.AsType[*net.DNSError](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	return certificate || ok && name.IsNotFound
}

// adviseOn is Advise for an answer of the service.
func adviseOn(answer *client.Error) string {
	switch answer.Code {
	case "plan_limit":
		return "The organization has to raise its plan's limit, or to wait for the next month."
	case "frozen", "read_only", "held", "moved", "importing":
		return "The operator of the service has to look after the organization's ledger."
	case "agent_inactive":
		return "The organization has to switch the agent on."
	}
	switch {
	case answer.Status == http.StatusUnauthorized:
		return "Check the ingest key: the service does not know it, or it is revoked."
	case answer.Status == http.StatusForbidden:
		return "Check the ingest key: its organization, its agents, and its scopes events and approvals."
	case strings.Contains(answer.Message, "emitted_at"):
		return "Set the clock of this machine."
	case answer.Status == http.StatusUnprocessableEntity:
		return "Check the call, and organization, agent and key of the agent."
	case answer.Status == http.StatusRequestTimeout, answer.Status == http.StatusConflict,
		answer.Status == http.StatusTooManyRequests, answer.Status >= http.StatusInternalServerError:
		return againLater
	}
	return "Check the address of the service."
}
