package account

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// Visit describes where a request of a person comes from.
type Visit struct {
	Address string `json:"address,omitzero"` // network address, as seen by the service
	Program string `json:"program,omitzero"` // user agent of the browser

	// FactorAt is when the person proved a factor. If 0, now. NoProof means that the time is unknown.
	FactorAt id.Instant `json:"-"`
	Browser  Browser    `json:"-"` // of the request, if it is known
	SignIn   Method     `json:"-"` // of the new session
}

// NoProof is the FactorAt of a sign-in for which the identity provider does not report when the person authenticated.
// It is so long ago that a vote requires a step-up.
const NoProof id.Instant = 1

const maxProgram = 200 // code points

// bounded returns the visit with a text that can be stored and displayed.
func (v Visit) bounded() Visit {
	text := []rune(strings.ToValidUTF8(v.Program, "?"))
	text = text[:min(len(text), maxProgram)]
	for i, r := range text {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			text[i] = '?'
		}
	}
	v.Program = string(text)
	return v
}

// LoginKind is the kind of a login event.
type LoginKind string

// The login events.
const (
	SignedIn        LoginKind = "signed_in"
	SteppedUp       LoginKind = "stepped_up"
	ChangedPassword LoginKind = "password_changed"
	ResetPassword   LoginKind = "password_reset"
	EndedSessions   LoginKind = "sessions_ended"
	ChangedEmail    LoginKind = "email_changed"
	AddedPasskey    LoginKind = "passkey_added"
	RemovedPasskey  LoginKind = "passkey_removed"
	RefusedCopy     LoginKind = "passkey_copied" // a passkey with a decreased counter was rejected
	MadeCodes       LoginKind = "recovery_codes_made"
	UsedCode        LoginKind = "recovery_code_used"
	RemovedFactors  LoginKind = "second_factors_removed" // by the operator
	ProvedAddress   LoginKind = "address_proved"         // with a mailed link, in a session of the account
	TakenOver       LoginKind = "address_taken_over"     // its first proof, which ended all ways to sign in
	LinkedProvider  LoginKind = "provider_linked"
)

// LoginEvent is one login event of an account. Only the account can see it. Login events are not events of a log,
// because an account belongs to no organization.
type LoginEvent struct {
	At   id.Instant `json:"at"`
	Kind LoginKind  `json:"kind"`
	Visit
}

// kindLoginEvent has one record for each event, by account, "/" and an increasing name, in the service's own partition.
const kindLoginEvent storage.Kind = "login_event"

// loginEvent returns the changes that add an event of each kind and remove the oldest ones. They must be written
// together with their cause, and a write must contain the changes of only one call.
func (a *Accounts) loginEvent(ctx context.Context, who ID, v Visit, kinds ...LoginKind) ([]storage.Change, error) {
	now := a.currentTime()
	var changes []storage.Change
	for _, kind := range kinds {
		value, err := json.Marshal(LoginEvent{At: now, Kind: kind, Visit: v.bounded()})
		if err != nil {
			return nil, fmt.Errorf("write login event: %w", err)
		}
		key := string(who) + "/" + id.Rising("", now)
		changes = append(changes, storage.Change{Kind: kindLoginEvent, Key: key, Value: value})
	}
	stored, err := a.loginEvents(ctx, who)
	if err != nil {
		return nil, err
	}
	for ; len(stored)+len(kinds) > MaxLoginEvents; stored = stored[1:] {
		changes = append(changes, removeChange(kindLoginEvent, stored[0].Key))
	}
	return changes, nil
}

func (a *Accounts) loginEvents(ctx context.Context, who ID) ([]records.Versioned[LoginEvent], error) {
	store := records.New[LoginEvent](a.records, kindLoginEvent, "Accounts can't be read")
	keys := records.Range{Begin: string(who) + "/", End: string(who) + "0"} // "0" follows "/"
	var found []records.Versioned[LoginEvent]
	for r, err := range store.Scan(ctx, id.Service, keys, 0) {
		if err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, nil
}

// LoginEvents returns the login events of an account, latest first.
func (a *Accounts) LoginEvents(ctx context.Context, who ID) ([]LoginEvent, error) {
	stored, err := a.loginEvents(ctx, who)
	if err != nil {
		return nil, err
	}
	events := make([]LoginEvent, len(stored))
	for i := range stored {
		events[i] = stored[i].Value
	}
	slices.Reverse(events)
	return events, nil
}
