package erasure

import (
	"context"
	"iter"

	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/storage"
)

// payloadsOfTools returns the approvals with a payload that are about the same actions as the collected events.
func (c *collection) payloadsOfTools(ctx context.Context) (names []approval.ID, err error) {
	if err := approval.EnsureActionIndex(ctx, c.Records, c.tenant, c.actionsBefore(ctx)); err != nil {
		return nil, errUnreadable("complete the index of actions", err)
	}
	if empty, err := approval.ActionIndexEmpty(ctx, c.Records, c.tenant); err != nil || empty {
		return nil, err
	}
	found, err := approval.FindByAction(ctx, c.Records, c.tenant, c.actions(ctx))
	for _, name := range found {
		names = append(names, approval.ID(name))
	}
	return names, err
}

// actionsBefore yields the index entries of approvals that an older program created.
func (c *collection) actionsBefore(ctx context.Context) iter.Seq2[storage.Change, error] {
	return func(yield func(storage.Change, error) bool) {
		for a, err := range c.Approvals.Behind(ctx, c.tenant, "") {
			if err == nil && a.ErasedAt != 0 {
				continue
			}
			if !yield(approval.IndexAction(a.ActionDigest, string(a.ID)), err) || err != nil {
				return
			}
		}
	}
}

// actions yields the action digests of the collected events that name a tool. If an event has a subject, the approval may have been
// requested without it, so the digest of that action follows.
func (c *collection) actions(ctx context.Context) iter.Seq2[id.Hash, error] {
	return func(yield func(id.Hash, error) bool) {
		for _, at := range c.tools {
			stored, err := c.Ledgers.Event(ctx, c.state, at, storage.FieldRecord|storage.FieldEnvelope)
			if err != nil {
				yield(id.Hash{}, err)
				return
			}
			read, err := follow.ReadEvent(stored)
			if err == nil && read.Envelope == nil {
				continue
			}
			if err != nil {
				yield(id.Hash{}, err)
				return
			}
			action := grant.ActionOf(read.Envelope)
			if !yield(action.Digest(), nil) {
				return
			}
			if action.OnBehalfOf != nil && !yield(action.WithoutSubject().Digest(), nil) {
				return
			}
		}
	}
}

// erasePayloads returns the changes that erase payloads, and the approvals that had one.
func (e *Erasures) erasePayloads(
	ctx context.Context, t id.Tenant, names []approval.ID,
) (changes []storage.Change, erased []approval.ID, err error) {
	for _, name := range names {
		some, err := e.Approvals.Erase(ctx, t, name, e.currentTime())
		if err != nil {
			return nil, nil, err
		}
		if len(some) > 0 {
			changes, erased = append(changes, some...), append(erased, name)
		}
	}
	return changes, erased, nil
}

// findOldPayloads returns at most maxApprovals approvals with a payload, after the given one, that were requested
// before an instant. It stops before an approval that is open, because approvers still decide on its payload. last is
// the latest approval that need not be examined again, even if its payload is already erased.
func (e *Erasures) findOldPayloads(
	ctx context.Context, t id.Tenant, after approval.ID, before id.Instant,
) (names []approval.ID, last approval.ID, err error) {
	last = after
	for a, err := range e.Approvals.Behind(ctx, t, after) {
		if err != nil {
			return nil, after, err
		}
		if len(names) == maxApprovals || a.CreatedAt >= before || a.Status.Open() {
			break
		}
		if last = a.ID; a.ErasedAt == 0 {
			names = append(names, last)
		}
	}
	return names, last, nil
}
