package transfer

import (
	"fmt"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// erasures are the erased events of an export whose statement has not come yet, by the statement's index. The
// memory grows with their ranges alone.
type erasures map[id.Index][]id.Range

// noteEvent takes the next event. It returns why a statement does not say what events before it claim.
func (w erasures) noteEvent(e *storage.Event) error {
	if claimed, ok := w[e.Index]; ok {
		delete(w, e.Index)
		said, err := readErasure(e)
		if err != nil {
			return fmt.Errorf("event %d, which erases others: %w", e.Index, err)
		}
		for _, r := range claimed {
			for i := r.Begin; i < r.End; i++ {
				if !said.Covers(i) {
					return fmt.Errorf("event %d does not say that it erased event %d", e.Index, i)
				}
			}
		}
	}
	if e.ErasedBy == 0 {
		return nil
	}
	claimed := w[e.ErasedBy]
	if n := len(claimed); n > 0 && claimed[n-1].End == e.Index {
		claimed[n-1].End++
		return nil
	}
	w[e.ErasedBy] = append(claimed, id.Range{Begin: e.Index, End: e.Index + 1})
	return nil
}

// end returns an error where a statement never came.
func (w erasures) end() error {
	for by, claimed := range w {
		return fmt.Errorf("event %d was erased by event %d, which is not there", claimed[0].Begin, by)
	}
	return nil
}

// readErasure reads the statement of an event of the service's own.
func readErasure(e *storage.Event) (event.Erasure, error) {
	envelope, err := event.Parse(e.Envelope, event.Options{Server: true, MaxBytes: len(e.Envelope) + 1})
	if err != nil {
		return event.Erasure{}, err
	}
	if !event.ReservedAgent(string(e.Agent)) || envelope.AgentID != e.Agent {
		return event.Erasure{}, fmt.Errorf("agent %s erases nothing", e.Agent)
	}
	return event.ParseErasure(envelope)
}
