package org

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
)

// A log gets another key under the same origin in two steps, each of which its ledger states: first both keys sign,
// then only the new one. There are two steps because auditors pin the new key between them.
const (
	logKeyCreated = "log_key_created"
	logKeyRetired = "log_key_retired"
)

// RotateLogKey gives an organization's log a second key and returns it: both keys sign from its From on. Events may
// be appended in the meantime. It returns fault.Conflict while two keys sign, and the errors of
// sysevent.Appender.Append.
func (o *Orgs) RotateLogKey(ctx context.Context, t id.Tenant, principal string) (log.LogKey, error) {
	key, size, err := o.changeLogKey(ctx, t, principal, logKeyCreated, o.ledgers.RotateLogKey)
	return log.LogKey{Verifier: key.Verifier, From: size, To: log.NoEnd}, err
}

// RetireLogKey ends the overlap of a rotation and returns the old key, which signs no tree of size To or more. It
// returns fault.Conflict if only one key signs.
func (o *Orgs) RetireLogKey(ctx context.Context, t id.Tenant, principal string) (log.LogKey, error) {
	key, size, err := o.changeLogKey(ctx, t, principal, logKeyRetired, o.ledgers.RetireLogKey)
	return log.LogKey{Verifier: key.Verifier, From: key.From, To: size}, err
}

// changeLogKey states a change of the log's keys and returns the changed key with the size of the tree that contains
// the statement.
func (o *Orgs) changeLogKey(ctx context.Context, t id.Tenant, principal, transition string,
	change func(context.Context, *log.State) (*log.KeyChange, error),
) (key log.KeyChange, size id.Index, err error) {
	receipts, err := o.events.Append(ctx, t, principal,
		func(ctx context.Context, s *log.State) (sysevent.Change, error) {
			made, err := change(ctx, s)
			if err != nil {
				return sysevent.Change{}, err
			}
			key = *made
			return sysevent.Change{Keys: made, Statements: []sysevent.Statement{{
				Kind: sysevent.LogKey,
				Payload: map[string]any{
					"vkey": made.Verifier.String(), "transition": transition,
				},
			}}}, nil
		})
	if err != nil {
		return log.KeyChange{}, 0, err
	}
	return key, receipts[0].Index + 1, nil
}
