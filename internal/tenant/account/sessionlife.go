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
	// touchEvery is how much later a session is seen again before that is written, so that
	// requests cost no write each.
	touchEvery = id.Instant(5 * time.Minute / time.Millisecond)
	// factorLife is for how long a proof of a factor counts.
	factorLife = id.Instant(15 * time.Minute / time.Millisecond)
)

// seenUntil sets the time of the last request, and the end that follows from it.
func (r *sessionRecord) seenUntil(now id.Instant, life time.Duration) *sessionRecord {
	r.SeenAt = now
	r.ExpiresAt = min(now+id.Instant(life/time.Millisecond), r.EndsAt)
	return r
}

// sessionOfRecord is the entry of a session in the list of its account.
type sessionOfRecord struct {
	Hash string `json:"hash"`
}

// sessionEndRecord names the entry in the list, "" for a session of an older program.
type sessionEndRecord struct {
	Listed string `json:"listed,omitzero"`
}

func (r *sessionRecord) listKey() string { return string(r.Account) + "/" + r.ID }

// putChanges returns the changes that write a session and when it ends.
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

// removeChanges returns the changes that take a session away.
func (r *sessionRecord) removeChanges(hash id.Hash) []storage.Change {
	return []storage.Change{
		removeChange(kindSession, hash.String()), removeChange(kindSessionEnd, r.endKey(hash)),
		removeChange(kindSessionOf, r.listKey()),
	}
}

// removeFromList returns the change that takes an ended session from its list. end is the value
// of the record that tells when it ends.
func removeFromList(end []byte) []storage.Change {
	var r sessionEndRecord
	if err := json.Unmarshal(end, &r); err != nil || r.Listed == "" {
		return nil // the list leaves out sessions that are not there
	}
	return []storage.Change{removeChange(kindSessionOf, r.Listed)}
}

// touchSession notes, every five minutes, that a session is used. It is no harm when that fails:
// the session ends at the time that is noted, and the next request tries again.
func (a *Accounts) touchSession(ctx context.Context, hash id.Hash, h *held) {
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

// CheckFactor returns fault.Unauthorized with code step_up when the person of a session did not
// prove within the last 15 minutes to be there. Votes and calls of owners alone ask it.
func (s *Session) CheckFactor() error {
	if !s.StepUpDue {
		return nil
	}
	return &fault.Error{Kind: fault.Unauthorized, Code: "step_up", Message: "Prove again that it is you: step up"}
}

// CookieName returns the name of the cookie that holds a session's token. Under https it has the
// prefix by which browsers refuse one that another host or a path set.
func CookieName(publicURL string) string {
	if strings.HasPrefix(strings.ToLower(publicURL), "https://") {
		return "__Host-agentledger"
	}
	return "agentledger_session"
}
