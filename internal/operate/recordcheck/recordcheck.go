// Package recordcheck checks the records that stand next to a log, which nobody has signed.
//
// Invariants:
//
//   - Decode knows each kind of record that an export may contain, and asks the package that owns the kind.
//   - Statements is only what the log itself states. What was never changed since the organization was founded is not in it.
//   - An organization is held for a contradiction that was found with events and records of one moment.
//   - A number that could overflow when it is counted up is refused, wherever it is in a record.
package recordcheck

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/deliver/mail"
	"github.com/agentledger/agentledger/internal/deliver/notify"
	"github.com/agentledger/agentledger/internal/deliver/streamexport"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/operate/directory"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/operate/witness"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/consoletoken"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/internal/tenant/voterkey"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Check reports why a record can't be read, as its owner reads it.
type Check = func(storage.Record) error

// checks returns the check of each kind.
var checks = sync.OnceValue(func() map[storage.Kind]Check {
	all := map[storage.Kind]Check{}
	for _, owned := range []func() map[storage.Kind]Check{
		approval.RecordChecks, notify.RecordChecks, workflow.RecordChecks,
		mail.RecordChecks, directory.RecordChecks, erasure.RecordChecks, witness.RecordChecks, streamexport.RecordChecks,
		sysevent.RecordChecks, account.RecordChecks, agent.RecordChecks, consoletoken.RecordChecks, member.RecordChecks,
		org.RecordChecks, policystore.RecordChecks, quota.RecordChecks, voterkey.RecordChecks, webhook.RecordChecks, log.RecordChecks,
	} {
		maps.Copy(all, owned())
	}
	return all
})

// Knows reports whether a record of that kind can be decoded.
func Knows(k storage.Kind) bool { return checks()[k] != nil }

// MaxNumber bounds versions of records and the integers in them. They are counted up by one, so no honest record comes near
// it, and none overflows.
const MaxNumber = 1 << 53

// Decode returns an error that wraps storage.ErrCorrupt if the owner of a record can't read it, or if a number in it could
// overflow.
func Decode(r storage.Record) error {
	check := checks()[r.Kind]
	if check == nil {
		return fmt.Errorf("%w: %s is no kind of record that this program knows", storage.ErrCorrupt, r.Kind)
	}
	if r.Version == 0 || r.Version > MaxNumber {
		return fmt.Errorf("%w: %s %q has version %d", storage.ErrCorrupt, r.Kind, r.Key, r.Version)
	}
	if err := check(r); err != nil {
		return fmt.Errorf("%s %q: %w", r.Kind, r.Key, err)
	}
	if err := checkNumbers(r.Value); err != nil {
		return fmt.Errorf("%w: %s %q: %w", storage.ErrCorrupt, r.Kind, r.Key, err)
	}
	return nil
}

// tenantMembers have the handle of an organization as their number, which is a random one of 63 bits and never counted up.
var tenantMembers = map[string]bool{"tenant": true, "home": true}

// checkNumbers refuses integers beyond MaxNumber in a JSON text. Values that are no JSON have none.
func checkNumbers(value []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(value))
	name := ""
	for {
		t, err := d.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return nil // the owner has read it in another way
		}
		kind, count := d.StackIndex(d.StackDepth())
		isName := kind == '{' && count%2 == 1
		switch {
		case t.Kind() == '"' && isName:
			name = t.String()
		case t.Kind() == '0' && !tenantMembers[name] && !isSmall(t.String()):
			return fmt.Errorf("%s: the number is too large", d.StackPointer())
		}
	}
}

// isSmall reports whether a JSON number is no integer or one within the bound.
func isSmall(text string) bool {
	for i, c := range text {
		if (c < '0' || c > '9') && (i > 0 || c != '-') {
			return true
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && n >= -MaxNumber && n <= MaxNumber
}
