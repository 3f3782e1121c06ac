package approval

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// kindAction has an entry for each approval with a payload, by the digest of its action and its ID. The entry under
// completeKey means that no approval is missing: stores of older programs have no entries yet.
const (
	kindAction  storage.Kind = "approval_action"
	completeKey string       = "complete"
)

func entryKey(action id.Hash, approval string) string { return action.String() + "/" + approval }

func putEntry(key string) storage.Change {
	return storage.Change{Kind: kindAction, Key: key, Value: []byte("{}"), If: storage.AnyVersion}
}

// IndexAction returns the change that adds an approval.
func IndexAction(action id.Hash, approval string) storage.Change {
	return putEntry(entryKey(action, approval))
}

// unindexAction returns the change that removes an approval.
func unindexAction(action id.Hash, approval string) storage.Change {
	return storage.Change{Kind: kindAction, Key: entryKey(action, approval), If: storage.AnyVersion}
}

// actionIndexComplete returns the change that marks the index as complete.
func actionIndexComplete() storage.Change { return putEntry(completeKey) }

// maxFound bounds the approvals of one action that FindByAction returns.
const maxFound = 1000

// FindByAction returns the approvals of the given actions, at most 1,000 of each.
func FindByAction(
	ctx context.Context, store storage.RecordStore, t id.Tenant, actions iter.Seq2[id.Hash, error],
) (approvals []string, err error) {
	for action, err := range actions {
		if err != nil {
			return nil, err
		}
		begin := entryKey(action, "")
		found, err := store.Scan(ctx, t, kindAction, begin, begin[:len(begin)-1]+"0", maxFound)
		if err != nil {
			return nil, fmt.Errorf("find approvals of an action: %w", err)
		}
		for i := range found {
			_, name, _ := strings.Cut(found[i].Key, "/")
			approvals = append(approvals, name)
		}
	}
	return approvals, nil
}

// ActionIndexEmpty reports whether a complete index contains no approval.
func ActionIndexEmpty(ctx context.Context, store storage.RecordStore, t id.Tenant) (bool, error) {
	found, err := store.Scan(ctx, t, kindAction, "", "", 2) // one is the mark of completeness
	return len(found) < 2, err
}

// EnsureActionIndex completes the index of an organization with the approvals that were stored before the index
// existed. Approvals that are requested in the meantime have an entry.
func EnsureActionIndex(
	ctx context.Context, store storage.RecordStore, t id.Tenant, before iter.Seq2[storage.Change, error],
) error {
	_, err := store.Get(ctx, t, kindAction, completeKey)
	if err == nil || !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	for change, err := range before {
		if err == nil {
			err = store.Write(ctx, t, []storage.Change{change})
		}
		if err != nil {
			return fmt.Errorf("note actions of approvals: %w", err)
		}
	}
	return store.Write(ctx, t, []storage.Change{actionIndexComplete()})
}
