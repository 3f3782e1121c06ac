package evidence

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/verify/pack"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// voterPage is the number of events about voter keys per read.
const voterPage = 500

// voterName identifies a credential of an account.
type voterName struct{ account, credential string }

// keyEvent is an event about a voter key.
type keyEvent struct {
	at         id.Index
	of         voterName
	consent    string // credential that consented; "" if none
	registered *pack.VoterKey
}

// voters contains the events about voter keys that the signed votes of a pack need.
type voters struct {
	events []keyEvent // ascending
	byName map[voterName][]keyEvent
}

// signedBy returns the voter key that signed the vote in a statement, or the zero value if there is no signed vote.
func signedBy(e *event.Envelope) (voterName, error) {
	var read struct {
		Signed *struct {
			Credential string `json:"credential_id"`
		} `json:"signed"`
	}
	if err := json.Unmarshal(e.Payload, &read); err != nil || read.Signed == nil {
		return voterName{}, err
	}
	account, _, _ := strings.Cut(e.ActorPrincipal, "/")
	return voterName{account, read.Signed.Credential}, nil
}

// key returns the voter key that is registered before an index, or nil.
func (v *voters) key(name voterName, before id.Index) *pack.VoterKey {
	events := v.byName[name]
	i, _ := slices.BinarySearchFunc(events, before, func(e keyEvent, at id.Index) int { return cmp.Compare(e.at, at) })
	if i == 0 {
		return nil
	}
	return events[i-1].registered
}

// findVoters finds the events about the voter keys that signed votes in the pack, and about those that consented to them.
func (x *Exporter) findVoters(ctx context.Context, p *plan) error {
	used, accounts := make(map[voterName]id.Index), make(map[string]bool)
	for _, a := range p.approvals {
		for at, name := range a.signed {
			used[name] = max(used[name], at)
			accounts[name.account] = true
		}
	}
	if len(used) == 0 {
		return nil
	}
	all, err := x.listKeyEvents(ctx, p, accounts)
	if err != nil {
		return err
	}
	needed := make(map[id.Index]bool)
	for _, e := range slices.Backward(all) {
		if e.registered == nil || used[e.of] <= e.at {
			continue
		}
		needed[e.at] = true
		if e.consent != "" {
			by := voterName{e.of.account, e.consent}
			used[by] = max(used[by], e.at)
		}
	}
	p.voters.byName = make(map[voterName][]keyEvent)
	for _, e := range all {
		if needed[e.at] || e.registered == nil && used[e.of] > 0 {
			p.voters.events = append(p.voters.events, e)
			p.voters.byName[e.of] = append(p.voters.byName[e.of], e)
		}
	}
	if len(p.voters.events) > pack.MaxVoterKeys {
		return errTooLarge()
	}
	p.counts.VoterKeys = uint64(len(p.voters.events))
	return nil
}

// listKeyEvents returns the events about voter keys of some accounts, in the tree of the checkpoint.
func (x *Exporter) listKeyEvents(ctx context.Context, p *plan, accounts map[string]bool) (found []keyEvent, err error) {
	q := index.Query{Limit: voterPage, Ascending: true, Filter: index.Filter{Signer: event.SignerSystem, Kind: signedvote.KeyKind,
		To: index.Bound{Given: true, Index: p.checkpoint.Size}}}
	for {
		page, err := x.Index.List(ctx, p.Tenant, q)
		if err != nil {
			return nil, err
		}
		if page.End < p.checkpoint.Size {
			return nil, &fault.Error{Kind: fault.Unavailable, Code: "busy", RetryAfter: 5 * time.Second,
				Message: "The events about voter keys are still being indexed; ask again"}
		}
		for i := range page.Rows {
			e, err := x.readKeyEvent(ctx, p, page.Rows[i].Index)
			if err != nil {
				return nil, err
			}
			if accounts[e.of.account] {
				found = append(found, e)
			}
		}
		if page.Next == nil {
			return found, nil
		}
		q.After = page.Next
	}
}

func (x *Exporter) readKeyEvent(ctx context.Context, p *plan, at id.Index) (e keyEvent, err error) {
	stored, err := x.Ledgers.Event(ctx, p.state, at, storage.FieldRecord|storage.FieldEnvelope)
	if err != nil {
		return e, err
	}
	envelope, err := parseStored(&stored)
	if err != nil {
		return e, err
	}
	registered, retired, err := signedvote.ParseKeyEvent(envelope.Payload)
	if err != nil {
		return e, fmt.Errorf("voter key at %d: %w", at, err)
	}
	if retired != nil {
		return keyEvent{at: at, of: voterName{retired.AccountID, retired.CredentialID.String()}}, nil
	}
	e = keyEvent{at: at, of: voterName{registered.AccountID, registered.CredentialID.String()}, registered: &pack.VoterKey{
		Thumbprint: registered.PublicKey.Thumbprint(), RegisteredAt: stored.ReceivedAt, LogIndex: at}}
	if registered.Consent != nil {
		e.consent = registered.Consent.CredentialID.String()
	}
	return e, nil
}

// writeVoters writes the events about voter keys.
func (w *packWriter) writeVoters(ctx context.Context) error {
	for _, e := range w.plan.voters.events {
		if _, _, err := w.writeProven(ctx, e.at); err != nil {
			return err
		}
	}
	return nil
}
