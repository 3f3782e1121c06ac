package runs

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Step is one attempt at one step of a run, identified by Key and Attempt. If the same step is
// reported again, the service answers from the ledger. If another step has the same Key and
// Attempt, the error is a *client.Error with status 422.
type Step struct {
	Key       string     `json:"step_key"`
	Attempt   int        `json:"attempt,omitzero"`    // from 1; 0 means 1
	Kind      string     `json:"kind,omitzero"`       // action_kind; "" means tool_call
	Tool      id.Tool    `json:"tool_name,omitzero"`  // if set, the policy decides on the step
	Payload   any        `json:"payload,omitzero"`    // must encode as a JSON object; nil is {}
	Status    string     `json:"status"`              // a word such as started, succeeded, failed, skipped
	StartedAt id.Instant `json:"started_at,omitzero"` // by the tool's clock
	EndedAt   id.Instant `json:"ended_at,omitzero"`
	Approval  string     `json:"approval_id,omitzero"` // for this tool and payload; the step consumes it
}

// StepResult is the service's answer to a step that is in the ledger. A denied step is in the
// ledger too, and the tool MUST NOT execute it.
type StepResult struct {
	Decision id.Decision   `json:"decision"`
	PolicyID string        `json:"policy_id"` // "" for a step without a tool
	RuleID   string        `json:"rule_id"`
	Reason   string        `json:"reason"`
	Event    client.Result `json:"event"`

	// Approval is the approval that the step consumed, or nil. With the decision
	// allow_with_obligation, the tool may proceed only if it is set.
	Approval *StepApproval `json:"approval"`
}

// StepApproval is an approval that a step consumed. Grant is a signed note, or "" if it has
// expired.
type StepApproval struct {
	ID     string                `json:"approval_id"`
	Status client.ApprovalStatus `json:"status"`
	Grant  string                `json:"grant"`
}

// MayProceed reports whether the tool may execute the step: the policy allows it, or the step
// consumed an approval.
func (r StepResult) MayProceed() bool {
	return r.Decision == id.Allow ||
		r.Decision == id.AllowWithObligation && r.Approval != nil && r.Approval.Status == client.ApprovalConsumed
}

// Limits of the service for one request.
const (
	maxListSteps = 50
	maxListBytes = 8 << 20
)

// Report appends steps to the ledger in order. It sends as many steps per request as the service
// accepts. The steps of one request are stored together or not at all. If there is an error, the
// results are those of the steps that are known to be stored.
func (r *Run) Report(ctx context.Context, steps ...Step) ([]StepResult, error) {
	results := make([]StepResult, 0, len(steps))
	for len(results) < len(steps) {
		part, err := r.reportList(ctx, steps[len(results):])
		if err != nil {
			return results, fmt.Errorf("report steps: %w", err)
		}
		results = append(results, part...)
	}
	return results, nil
}

// reportList sends the first steps of a list in one request.
func (r *Run) reportList(ctx context.Context, steps []Step) ([]StepResult, error) {
	body, n, err := encodeSteps(steps)
	if err != nil {
		return nil, err
	}
	var results []StepResult
	if err := r.client.Call(ctx, http.MethodPost, r.resourcePath()+"/steps", jsontext.Value(body),
		&results); err != nil {
		return nil, err
	}
	if len(results) != n {
		return nil, malformedAnswer(fmt.Sprintf("%d steps to %d", len(results), n))
	}
	for i := range results {
		if results[i].Decision == 0 || results[i].Event.EventID == "" {
			return nil, malformedAnswer("no decision")
		}
	}
	r.progress.addReportedSteps(steps[:n]...)
	return results, nil
}

// encodeSteps encodes as many of the first steps as fit into one request, and returns their number.
func encodeSteps(steps []Step) (body []byte, n int, err error) {
	body = []byte{'['}
	for n < len(steps) && n < maxListSteps {
		text, err := jcs.Marshal(steps[n])
		if err != nil {
			return nil, 0, fmt.Errorf("encode step: %w", err)
		}
		if n > 0 && len(body)+len(text)+2 > maxListBytes {
			break
		}
		if n > 0 {
			body = append(body, ',')
		}
		body = append(body, text...)
		n++
	}
	return append(body, ']'), n, nil
}

// Event is an event of a run in the ledger. Key is "" for the events of start and end.
type Event struct {
	EventID     id.Event    `json:"event_id"`
	Kind        string      `json:"action_kind"`
	SequenceNum uint64      `json:"sequence_num"`
	EventHash   id.Hash     `json:"event_hash"`
	ReceivedAt  id.Instant  `json:"received_at"`
	Key         string      `json:"step_key"`
	Attempt     int         `json:"attempt"`
	Status      string      `json:"status"`
	Tool        id.Tool     `json:"tool_name"`
	Decision    id.Decision `json:"decision"`
}

type eventPage struct {
	Result
	Events []Event `json:"events"`
	Next   *int    `json:"next"`
}

// pageEvents is the number of events per request.
const pageEvents = 1000

func (r *Run) fetchEventPage(ctx context.Context, after, limit int) (page eventPage, err error) {
	path := r.resourcePath() + "?after=" + strconv.Itoa(after) + "&limit=" + strconv.Itoa(limit)
	err = r.client.Call(ctx, http.MethodGet, path, nil, &page)
	if err == nil && page.Next != nil && *page.Next <= after {
		err = malformedAnswer("pages go backwards")
	}
	if err != nil {
		return page, fmt.Errorf("read run: %w", err)
	}
	return page, nil
}

// Events yields the events of the run in the ledger's order. It stops at the first error.
func (r *Run) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for after := 0; ; {
			page, err := r.fetchEventPage(ctx, after, pageEvents)
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, e := range page.Events {
				if !yield(e, nil) {
					return
				}
			}
			if page.Next == nil {
				return
			}
			after = *page.Next
		}
	}
}
