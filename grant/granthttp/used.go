package granthttp

import (
	"container/list"
	"sync"

	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
)

// MaxUsed is the maximum number of grants that are remembered. A grant is remembered for at most five
// minutes, so it is enough for 218 approved actions a second. They take at most 16 MiB.
const MaxUsed = 1 << 16

// used remembers the nonces of grants until they expire. A grant is in it from the moment in which its
// request is read, so that at most one body is read for each grant.
type used struct {
	mu      sync.Mutex
	most    int
	entries list.List // of entry, in the order of use
	byNonce map[grant.Nonce]*list.Element
	floor   id.Instant // the latest expiry of a grant that was forgotten
}

type entry struct {
	nonce    grant.Nonce
	notAfter id.Instant
}

func newUsed() *used { return &used{most: MaxUsed, byNonce: map[grant.Nonce]*list.Element{}} }

// claim remembers a grant, or returns why it can't be used. When the clock goes back, grants that were
// forgotten stay expired.
func (u *used) claim(g grant.Grant, now id.Instant) *refusal {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, taken := u.byNonce[g.Nonce]; taken {
		return refuse(403, "used", "The grant was used before")
	}
	for {
		first := u.entries.Front()
		if first == nil || first.Value.(entry).notAfter > now {
			break
		}
		u.floor = max(u.floor, first.Value.(entry).notAfter)
		u.remove(first)
	}
	if g.NotAfter <= u.floor {
		return refuse(403, "expired", "The grant has expired")
	}
	if len(u.byNonce) >= u.most {
		full := refuse(503, "full", "Too many grants are in use: repeat the request later")
		full.retry = int((u.entries.Front().Value.(entry).notAfter - now + 999) / 1000)
		return full
	}
	u.byNonce[g.Nonce] = u.entries.PushBack(entry{g.Nonce, g.NotAfter})
	return nil
}

// release forgets a grant whose action was not permitted, so that it can be used for its own action.
func (u *used) release(n grant.Nonce) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if e, ok := u.byNonce[n]; ok {
		u.remove(e)
	}
}

func (u *used) remove(e *list.Element) {
	delete(u.byNonce, e.Value.(entry).nonce)
	u.entries.Remove(e)
}
