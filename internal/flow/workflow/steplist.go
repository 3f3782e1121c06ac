package workflow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// listRecord contains the steps that one request added to a run, in order.
type listRecord struct {
	Steps []listedStep `json:"steps"`
}

// listedStep is the part of a step's view that its event does not contain.
type listedStep struct {
	Event   id.Event `json:"event_id"`
	Key     string   `json:"step_key"`
	Attempt int      `json:"attempt"`
	Tool    id.Tool  `json:"tool_name,omitzero"`
	Status  string   `json:"status"`
}

// listName returns the key of a list whose last step is number last of its run, from 1. So the list with a given step
// is the first one whose key is not before the step's name.
func listName(name ID, last int) string { return fmt.Sprintf("%s/%08d", name, last) }

// listsRead is the maximum number of lists per read. firstLists is the size of the first read, before the length of the
// lists is known.
const (
	listsRead  = 1000
	firstLists = 4
)

// readSteps returns the steps of a run from number first to number last, counted from 1. It reads the lists that
// contain them, and few others.
func (w *Workflows) readSteps(ctx context.Context, t id.Tenant, name ID, first, last int) ([]listedStep, error) {
	var found []listedStep
	keys := records.Range{Begin: listName(name, first), End: listName(name, MaxSteps+1)}
	for count, chunk := last-first+1, firstLists; len(found) < count; {
		page, err := w.stores.lists.List(ctx, t, keys, chunk)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if found, err = selectSteps(found, name, &page[i], first, last); err != nil {
				return nil, errUnreadable("list steps", err)
			}
		}
		if len(page) < chunk {
			break
		}
		keys.Begin = records.After(page[len(page)-1].Key).Begin
		chunk = min(listsRead, 1+(count-len(found))*len(page)/max(1, len(found)))
	}
	if len(found) != last-first+1 {
		return nil, errUnreadable("list steps",
			fmt.Errorf("%d of the steps %d to %d exist: %w", len(found), first, last, storage.ErrCorrupt))
	}
	return found, nil
}

// selectSteps adds the steps of a list from number first to number last of the run.
func selectSteps(
	found []listedStep, name ID, list *records.Versioned[listRecord], first, last int,
) ([]listedStep, error) {
	var end int
	if _, err := fmt.Sscanf(list.Key[len(name):], "/%08d", &end); err != nil || listName(name, end) != list.Key {
		return nil, fmt.Errorf("a list's name: %w", storage.ErrCorrupt)
	}
	for i, step := range list.Value.Steps {
		if order := end - len(list.Value.Steps) + 1 + i; order >= first && order <= last {
			found = append(found, step)
		}
	}
	return found, nil
}

// lateRecord represents a step_key that was not reported with attempt 1 first.
type lateRecord struct{}

func deadlineName(name ID, key string) string {
	sum := sha256.Sum256([]byte(key))
	return string(name) + "/" + hex.EncodeToString(sum[:16])
}

// keyTally counts the step_keys of a run as new steps are added, without reading the other steps: a key is first
// reported with attempt 1, or leaves a lateRecord.
type keyTally struct {
	workflows *Workflows
	place     place
	seen      map[string]bool // keys of the same request
}

// count counts the key of a new step, in r, and returns the changes for it. The records that it reads are as new as r
// or newer. If they are newer, the append finds another version of r.
func (k *keyTally) count(ctx context.Context, r *record, step *Step) ([]storage.Change, error) {
	if k.seen[step.Key] {
		return nil, nil
	}
	k.seen[step.Key] = true
	w, t := k.workflows, k.place.tenant
	if step.Attempt != 1 {
		one, err := w.stores.steps.Get(ctx, t, stepName(k.place.name, r.stepEvent(step.Key, 1)))
		if err != nil || one.Exists() {
			return nil, err
		}
	}
	late := records.Versioned[lateRecord]{Key: deadlineName(k.place.name, step.Key)}
	if r.Late > 0 {
		var err error
		if late, err = w.stores.late.Get(ctx, t, late.Key); err != nil || late.Exists() {
			return nil, err
		}
	}
	r.Keys++
	if step.Attempt == 1 {
		return nil, nil
	}
	r.Late++
	change, err := w.stores.late.Put(late)
	return []storage.Change{change}, err
}
