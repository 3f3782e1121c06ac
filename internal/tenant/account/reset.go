package account

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/ratelimit"
	"github.com/agentledger/agentledger/internal/tenant/password"
	"github.com/agentledger/agentledger/storage"
)

// kindReset has one record for each account with a requested reset, by account ID, in the service's own partition. A
// later reset replaces the earlier one, so strangers cannot create many.
const kindReset storage.Kind = "password_reset"

// ResetLife is how long a reset is valid.
const ResetLife = time.Hour

// decoys is the number of records that represent all addresses without an account.
const decoys = 1024

type resetRecord struct {
	Hash       string     `json:"hash"` // of the token
	Generation uint64     `json:"generation"`
	ExpiresAt  id.Instant `json:"expires_at"`
}

// Reset is a requested password reset. Its token is not stored.
type Reset struct {
	Token string
	Name  string // identifies the reset until a later one of the account
	Typed string // the requested address in lower case
	Email string // "" if the address has no account
	Until id.Instant
}

// BeginReset creates a reset for an address. It writes the reset together with the changes that tell returns for it,
// for example those of a mail. An address without an account causes the same work and the same records, which have no
// effect. It returns fault.RateLimited after too many resets for an address or from a network.
func (a *Accounts) BeginReset(
	ctx context.Context, typed string, from netip.Addr, notify func(context.Context, Reset) ([]storage.Change, error),
) error {
	typed = strings.ToLower(typed)
	if _, err := a.resets.countAttempt(typed, from, Browser{}); err != nil {
		return err
	}
	who, r, err := a.findCandidate(ctx, typed)
	if err != nil {
		return err
	}
	reset := a.newReset(who, typed, r.Email)
	changes, err := notify(ctx, reset)
	if fault.Is(err, fault.RateLimited) { // the earlier link remains valid: do the work of an unknown address
		reset = a.newReset("", typed, "")
		reset.Typed = ""
		changes, err = notify(ctx, reset)
	}
	if err != nil {
		return err
	}
	hash := hashToken(reset.Token)
	value, err := json.Marshal(resetRecord{Hash: hash.String(), Generation: r.Generation, ExpiresAt: reset.Until})
	if err != nil {
		return fmt.Errorf("begin reset: %w", err)
	}
	changes = append(changes, storage.Change{Kind: kindReset, Key: reset.Name, Value: value, If: storage.AnyVersion})
	if err := a.records.Write(ctx, id.Service, changes); err != nil {
		return errUnreadable("begin reset", err)
	}
	return nil
}

// newReset returns a reset for an account. who is "" if there is none.
func (a *Accounts) newReset(who ID, typed, email string) Reset {
	name := string(who)
	if who == "" {
		name = string(decoyFor(typed))
	}
	return Reset{Token: name + "." + newToken(), Name: name, Typed: typed, Email: email,
		Until: id.InstantOf(a.clock().Add(ResetLife))}
}

// decoyFor returns the ID of an account that never exists and is read instead for an address without an account.
func decoyFor(email string) ID {
	sum := sha256.Sum256([]byte(email))
	return ID(fmt.Sprintf("decoy_%04d", (int(sum[0])<<8|int(sum[1]))%decoys))
}

// FindReset returns the account that a token resets. It returns fault.Invalid for a token that is
// wrong, used, replaced by a later one or expired, and fault.RateLimited after too many of these.
func (a *Accounts) FindReset(ctx context.Context, token string, from netip.Addr) (ID, error) {
	_, who, _, _, err := a.readReset(ctx, token, from)
	return who, err
}

func (a *Accounts) readReset(ctx context.Context, token string, from netip.Addr) (
	r *accountRecord, who ID, version, reset uint64, err error) {
	name, _, _ := strings.Cut(token, ".")
	undo, err := a.resets.countAttempt("token "+name+" "+ratelimit.NetworkOf(from), from, Browser{})
	if err != nil {
		return nil, "", 0, 0, err
	}
	var stored resetRecord
	if reset, err = a.readRecord(ctx, id.Service, kindReset, name, &stored); err != nil {
		return nil, "", 0, 0, asNoReset(err)
	}
	want, err := hex.DecodeString(stored.Hash)
	if err != nil {
		return nil, "", 0, 0, errUnreadable("read reset", err)
	}
	given := hashToken(token)
	if subtle.ConstantTimeCompare(given[:], want) != 1 || a.currentTime() >= stored.ExpiresAt {
		return nil, "", 0, 0, errNoReset()
	}
	who = ID(name)
	if r, version, err = a.findByID(ctx, who); err != nil {
		return nil, "", 0, 0, asNoReset(err)
	}
	if r.Generation != stored.Generation { // the password was changed in the meantime
		return nil, "", 0, 0, errNoReset()
	}
	undo()
	return r, who, version, reset, nil
}

func errNoReset() error {
	return &fault.Error{Kind: fault.Invalid, Code: "reset_over",
		Message: "The link to set a new password has expired: request another one"}
}

func asNoReset(err error) error {
	if fault.Is(err, fault.NotFound) {
		return errNoReset()
	}
	return err
}

// ResetPassword sets the password of an account for the person who has a token of BeginReset, and ends all its
// sessions at once. If the address was not proved before, the account is taken over and its other factors end too.
// The token is used up. names are the names of the person's organizations. It returns the errors of FindReset and
// SetPassword. After an error because of the password, the token remains valid.
func (a *Accounts) ResetPassword(
	ctx context.Context, token, text string, from netip.Addr, v Visit, names ...string,
) error {
	r, who, version, reset, err := a.readReset(ctx, token, from)
	if err != nil {
		return err
	}
	if err := password.Check(text, r.Email, names...); err != nil {
		return err
	}
	if err := a.ensureProof(ctx, who, r); err != nil {
		return err
	}
	var changes []storage.Change
	if r.Proof.proved() {
		changes, err = a.loginEvent(ctx, who, v, ResetPassword)
	} else {
		changes, err = a.takeOver(ctx, who, r, ProvedByMail, v, ResetPassword)
	}
	if err != nil {
		return err
	}
	if err := a.noteSignIn(ctx, who, r, SignInByMail, PasswordSet); err != nil {
		return err
	}
	changes = append(changes, storage.Change{Kind: kindReset, Key: string(who), If: reset})
	err = a.replacePassword(ctx, who, r, version, text, names, changes...)
	if errors.Is(err, storage.ErrStale) { // by another call with the token
		return errNoReset()
	}
	return err
}
