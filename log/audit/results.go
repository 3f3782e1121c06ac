package audit

import (
	"context"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// checkResult checks that a result has the decision of its intent, which must be an earlier event of the same agent and
// tool. An intent that can't be read is reported as damage on its own.
func (x *examiner) checkResult(ctx context.Context, e *storage.Event, r *event.Record) error {
	names := []storage.DedupKey{{Text: string(r.Policy.Intent)}}
	at, err := x.store.Lookup(ctx, x.identity.Tenant, names)
	if log.IsDamage(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if at[0] >= e.Index {
		x.reportIndex(log.Suspect, "record", uint64(e.Index), "names an intent that is not before it")
		return nil
	}
	return x.compareIntent(ctx, e, r, at[0])
}

func (x *examiner) compareIntent(ctx context.Context, e *storage.Event, r *event.Record, at id.Index) error {
	intent, err := log.ReadEvent(ctx, x.store, x.identity.Tenant, at, storage.FieldRecord)
	if log.IsDamage(err) {
		return nil
	}
	if err != nil {
		return err
	}
	record, err := event.ParseRecord(intent.Record)
	if err != nil {
		return nil
	}
	if intent.Tool != e.Tool || !r.FollowsFrom(&record) {
		x.reportIndex(log.Suspect, "record", uint64(e.Index), "does not follow from its intent")
	}
	return nil
}
