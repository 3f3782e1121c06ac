package transfer

import (
	"fmt"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// erasures are the erased events of an export whose statement was not yet read, by the index of the statement. Memory
// grows only with the number of their ranges.
type erasures map[id.Index][]id.Range

// noteEvent processes the next event. It returns an error if the event does not state the erasures that earlier
// events refer to.
func (w erasures) noteEvent(e *storage.Event) error {
	if claimed, ok := w[e.Index]; ok {
		delete(w, e.Index)
		statement, err := readErasure(e)
		if err != nil {
			return fmt.Errorf("erasing event %d: %w", e.Index, err)
		}
		for _, r := range claimed {
			for i := r.Begin; i < r.End; i++ {
				if !statement.Covers(i) {
					return fmt.Errorf("event %d does not state that it erased event %d", e.Index, i)
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

// end returns an error if a statement is missing.
func (w erasures) end() error {
	for by, claimed := range w {
		return fmt.Errorf("event %d was erased by event %d, which is missing", claimed[0].Begin, by)
	}
	return nil
}

// readErasure decodes the erasure that an event of the service states.
func readErasure(e *storage.Event) (event.Erasure, error) {
	envelope, err := event.Parse(e.Envelope, event.Options{Server: true, MaxBytes: len(e.Envelope) + 1})
	if err != nil {
		return event.Erasure{}, err
	}
	if !event.ReservedAgent(string(e.Agent)) || envelope.AgentID != e.Agent {
		return event.Erasure{}, fmt.Errorf("agent %s cannot erase events", e.Agent)
	}
	return event.ParseErasure(envelope)
}
