// Package recordcheck checks the records of an organization, which are not signed, against its log, which is. Callers
// learn whether a record can be decoded, and whether records contradict what the log states; the owners of the record
// kinds stay hidden.
//
// Invariants:
//
//   - Decode knows each kind of record that an export may contain, and calls the package that owns the kind.
//   - Statements contains only what the log itself states. What never changed since the organization was founded is
//     not part of it.
//   - An organization is held only for a contradiction between events and records of the same moment.
//   - A number that could overflow when it is incremented is rejected, wherever it is in a record.
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
	"github.com/agentledger/agentledger/internal/tenant/apitoken"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/internal/tenant/share"
	"github.com/agentledger/agentledger/internal/tenant/slacklink"
	"github.com/agentledger/agentledger/internal/tenant/voterkey"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Check returns an error if the owner of a record cannot decode it.
type Check = func(storage.Record) error

// checks returns the checks of all kinds.
var checks = sync.OnceValue(func() map[storage.Kind]Check {
	all := map[storage.Kind]Check{}
	for _, owned := range []func() map[storage.Kind]Check{
		approval.RecordChecks, notify.RecordChecks, workflow.RecordChecks,
		mail.RecordChecks, directory.RecordChecks, erasure.RecordChecks, witness.RecordChecks, streamexport.RecordChecks,
		sysevent.RecordChecks, account.RecordChecks, agent.RecordChecks, apitoken.RecordChecks, member.RecordChecks,
		org.RecordChecks, policystore.RecordChecks, quota.RecordChecks, share.RecordChecks, slacklink.RecordChecks, voterkey.RecordChecks, webhook.RecordChecks, log.RecordChecks,
	} {
		maps.Copy(all, owned())
	}
	return all
})

// Knows reports whether records of that kind can be decoded.
func Knows(k storage.Kind) bool { return checks()[k] != nil }

// MaxNumber bounds versions of records and the integers in them. They are incremented by one, so no honest record
// comes near it, and none overflows.
const MaxNumber = 1 << 53

// Decode returns an error that wraps storage.ErrCorrupt if the owner of a record cannot decode it, or if a number in
// it could overflow.
func Decode(r storage.Record) error {
	check := checks()[r.Kind]
	if check == nil {
		return fmt.Errorf("%w: unknown kind of record %s", storage.ErrCorrupt, r.Kind)
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

// tenantMembers contain an organization's handle, which is a random number of 63 bits and is never incremented.
var tenantMembers = map[string]bool{"tenant": true, "home": true}

// checkNumbers rejects integers beyond MaxNumber in a JSON text. It accepts values that are not JSON.
func checkNumbers(value []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(value))
	name := ""
	for {
		t, err := d.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return nil // the owner decodes another format
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

// isSmall reports whether a JSON number is not an integer or is within the limit.
func isSmall(text string) bool {
	for i, c := range text {
		if (c < '0' || c > '9') && (i > 0 || c != '-') {
			return true
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && n >= -MaxNumber && n <= MaxNumber
}
