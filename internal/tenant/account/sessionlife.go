package account

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

const (
	// touchEvery is the interval in which the use of a session is written, so that not every request needs a write.
	touchEvery = id.Instant(5 * time.Minute / time.Millisecond)
	// factorLife is how long a proof of a factor is valid.
	factorLife = id.Instant(15 * time.Minute / time.Millisecond)
)

// seenUntil sets the time of the last request and the expiry that follows from it.
func (r *sessionRecord) seenUntil(now id.Instant, life time.Duration) *sessionRecord {
	r.SeenAt = now
	r.ExpiresAt = min(now+id.Instant(life/time.Millisecond), r.EndsAt)
	return r
}

// sessionOfRecord is the entry of a session in the list of its account.
type sessionOfRecord struct {
	Hash string `json:"hash"`
}

// sessionEndRecord contains the key in the list of the account, or "" for a session of an older program.
type sessionEndRecord struct {
	Listed string `json:"listed,omitzero"`
}

func (r *sessionRecord) listKey() string { return string(r.Account) + "/" + r.ID }

// putChanges returns the changes that write a session and its expiry.
func (r *sessionRecord) putChanges(hash id.Hash, version uint64) ([]storage.Change, error) {
	value, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("write session: %w", err)
	}
	end, err := json.Marshal(sessionEndRecord{Listed: r.listKey()})
	if err != nil {
		return nil, fmt.Errorf("write session: %w", err)
	}
	return []storage.Change{
		{Kind: kindSession, Key: hash.String(), Value: value, If: version},
		{Kind: kindSessionEnd, Key: r.endKey(hash), Value: end, If: storage.AnyVersion},
	}, nil
}

// removeChanges returns the changes that remove a session.
func (r *sessionRecord) removeChanges(hash id.Hash) []storage.Change {
	return []storage.Change{
		removeChange(kindSession, hash.String()), removeChange(kindSessionEnd, r.endKey(hash)),
		removeChange(kindSessionOf, r.listKey()),
	}
}

// removeFromList returns the change that removes an expired session from its list. end is the value of the session's
// kindSessionEnd record.
func removeFromList(end []byte) []storage.Change {
	var r sessionEndRecord
	if err := json.Unmarshal(end, &r); err != nil || r.Listed == "" {
		return nil // the list ignores missing sessions
	}
	return []storage.Change{removeChange(kindSessionOf, r.Listed)}
}

// touchSession records the use of a session, at most every five minutes. If that fails, the session keeps its
// recorded expiry, and the next request tries again.
func (a *Accounts) touchSession(ctx context.Context, hash id.Hash, h *cachedSession) {
	now := a.currentTime()
	if h.ID == "" || now < h.SeenAt+touchEvery {
		return
	}
	r, before := h.sessionRecord, h.endKey(hash)
	changes, err := r.seenUntil(now, a.life).putChanges(hash, h.version)
	if err != nil {
		return
	}
	if r.endKey(hash) != before {
		changes = append(changes, removeChange(kindSessionEnd, before))
	}
	if a.records.Write(ctx, id.Service, changes) == nil {
		a.sessions.Drop(hash)
	}
}

// CheckFactor returns fault.Unauthorized with code step_up unless the person of a session has proved a factor within
// the last 15 minutes. Votes and calls reserved for owners require it.
func (s *Session) CheckFactor() error {
	if !s.StepUpDue {
		return nil
	}
	return &fault.Error{Kind: fault.Unauthorized, Code: "step_up", Message: "Confirm your identity again: step up"}
}

// CookieName returns the name of the cookie with a session's token. With https it has the prefix for which browsers
// reject cookies set by another host or for a path.
func CookieName(publicURL string) string {
	if strings.HasPrefix(strings.ToLower(publicURL), "https://") {
		return "__Host-agentledger"
	}
	return "agentledger_session"
}
