package apitoken

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Wanted describes a new token.
type Wanted struct {
	Name      string
	Role      account.Role
	ExpiresAt id.Instant
}

func (k *Tokens) checkWanted(w Wanted, maker account.Role) error {
	now := k.currentTime()
	switch {
	case !textcheck.Name(w.Name, 1, maxName):
		return fault.New(fault.Invalid, "name must have 1 to 100 characters and no control characters")
	case !w.Role.Valid() || w.Role == account.Owner:
		return fault.New(fault.Invalid, "role must be admin, policy_editor, approver, auditor or member")
	case w.ExpiresAt <= now:
		return fault.New(fault.Invalid, "expires_at must be in the future")
	case w.ExpiresAt > now+id.Instant(maxLife/time.Millisecond):
		return fault.New(fault.Invalid, "expires_at must be at most a year from now")
	case !maker.Covers(w.Role):
		return fault.New(fault.Forbidden, "The token's role exceeds yours")
	}
	return nil
}

// Create creates a token of a member and states it (ledger_token_created). The token itself is not stored. It returns
// fault.Forbidden if the maker's role does not cover the token's, and fault.Conflict if the member has MaxTokens.
func (k *Tokens) Create(ctx context.Context, t id.Tenant, who account.ID, w Wanted) (Token, string, error) {
	maker, err := k.Members.Membership(ctx, t, who)
	if err != nil {
		return Token{}, "", err
	}
	if err := k.checkWanted(w, maker.Role); err != nil {
		return Token{}, "", err
	}
	now := k.currentTime()
	secret := generateToken()
	made := tokenRecord{ID: ID(id.Rising("tok_", now)), Name: w.Name, Role: w.Role, Hash: hashToken(secret),
		Membership: maker.ID, CreatedAt: now, ExpiresAt: w.ExpiresAt}
	held, err := k.tokens.Get(ctx, t, string(who))
	if err != nil {
		return Token{}, "", err
	}
	if _, err := k.makeRoom(&held.Value, maker.ID); err != nil { // check before anything is claimed
		return Token{}, "", err
	}
	var over []id.Hash
	err = k.claims.Create(ctx, made.Hash, claimRecord{t, who}, func() error {
		return k.changeTokens(ctx, t, who, func(ctx context.Context, r *memberRecord) (*statement, error) {
			maker, err := k.Members.Membership(ctx, t, who) // the role may have changed meanwhile
			if err != nil {
				return nil, err
			}
			if err := k.checkWanted(w, maker.Role); err != nil {
				return nil, err
			}
			if over, err = k.makeRoom(r, maker.ID); err != nil {
				return nil, err
			}
			r.Tokens = append(r.Tokens, made)
			paced, err := k.Pace.CountStatement(ctx, t)
			return &statement{sysevent.TokenCreated, map[string]any{
				"token_id": made.ID, "name": w.Name, "role": w.Role, "expires_at": w.ExpiresAt,
			}, paced}, err
		})
	})
	if err != nil {
		return Token{}, "", err
	}
	k.claims.Remove(ctx, over)
	return made.toToken(), secret, nil
}

// makeRoom removes tokens that have ended and returns their hashes, or an error if the member still has MaxTokens.
func (k *Tokens) makeRoom(r *memberRecord, membership string) (over []id.Hash, err error) {
	var rest []tokenRecord
	for _, token := range r.Tokens {
		if token.Membership != membership || k.currentTime() >= token.ExpiresAt {
			over = append(over, token.Hash)
			continue
		}
		rest = append(rest, token)
	}
	if len(rest) >= MaxTokens {
		return nil, &fault.Error{Kind: fault.Conflict, Code: "token_limit",
			Message: "You have 20 tokens, the most that a member may have: delete one first"}
	}
	r.Tokens = rest
	return over, nil
}

// List returns the tokens of a member, oldest first. It omits those that ended with an earlier membership.
func (k *Tokens) List(ctx context.Context, t id.Tenant, who account.ID) ([]Token, error) {
	maker, err := k.Members.Membership(ctx, t, who)
	if err != nil {
		return nil, err
	}
	held, err := k.tokens.Get(ctx, t, string(who))
	if err != nil {
		return nil, err
	}
	all := []Token{}
	for i := range held.Value.Tokens {
		if r := &held.Value.Tokens[i]; r.Membership == maker.ID {
			all = append(all, r.toToken())
		}
	}
	return all, nil
}

// Delete deletes a token of a member and states it (ledger_token_deleted). It returns fault.NotFound if the member
// has no token with that id.
func (k *Tokens) Delete(ctx context.Context, t id.Tenant, who account.ID, name ID) error {
	var over []id.Hash
	err := k.changeTokens(ctx, t, who, func(_ context.Context, r *memberRecord) (*statement, error) {
		at := slices.IndexFunc(r.Tokens, func(token tokenRecord) bool { return token.ID == name })
		if at < 0 {
			return nil, fault.New(fault.NotFound, "Not found")
		}
		over = []id.Hash{r.Tokens[at].Hash}
		r.Tokens = slices.Delete(r.Tokens, at, at+1)
		return &statement{sysevent.TokenDeleted, map[string]any{"token_id": name}, nil}, nil
	})
	if err != nil {
		return err
	}
	k.claims.Remove(ctx, over)
	return nil
}

// statement returns the statement of a change of tokens, together with changes of other records.
type statement struct {
	kind    sysevent.Kind
	payload map[string]any
	changes []storage.Change
}

// changeTokens changes a member's tokens together with the append of the statement that change returns.
func (k *Tokens) changeTokens(
	ctx context.Context, t id.Tenant, who account.ID,
	change func(context.Context, *memberRecord) (*statement, error),
) error {
	_, err := k.Events.Append(ctx, t, string(who), func(ctx context.Context, _ *log.State) (sysevent.Change, error) {
		held, err := k.tokens.Get(ctx, t, string(who))
		if err != nil {
			return sysevent.Change{}, err
		}
		stated, err := change(ctx, &held.Value)
		if err != nil {
			return sysevent.Change{}, err
		}
		put, err := k.tokens.Put(held)
		if err != nil {
			return sysevent.Change{}, err
		}
		return sysevent.Change{
			Statements:        []sysevent.Statement{{Kind: stated.kind, Payload: stated.payload}},
			Changes:           append(stated.changes, put),
			KeepConfigVersion: true,
		}, nil
	})
	if err != nil {
		return fmt.Errorf("change tokens: %w", err)
	}
	return nil
}
