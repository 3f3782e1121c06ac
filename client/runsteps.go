package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Step is what a tool reports of one step of a run, or of one attempt at it. The same
// Key and Attempt are the same step: reported again just so it is answered from the
// ledger, reported otherwise it is an *Error of status 422.
type Step struct {
	Key       string     `json:"step_key"`
	Attempt   int        `json:"attempt,omitzero"`    // from 1; 0 is 1
	Kind      string     `json:"kind,omitzero"`       // action_kind, "" is tool_call
	Tool      id.Tool    `json:"tool_name,omitzero"`  // the policy is asked about a step with a tool
	Payload   any        `json:"payload,omitzero"`    // must become a JSON object; nil is {}
	Status    string     `json:"status"`              // a word such as started, succeeded, failed, skipped
	StartedAt id.Instant `json:"started_at,omitzero"` // as the tool says
	EndedAt   id.Instant `json:"ended_at,omitzero"`
}

// StepResult is what the service says of a step that is in the ledger. A denial is one
// too: to heed it is the tool's duty.
type StepResult struct {
	Decision id.Decision `json:"decision"`
	PolicyID string      `json:"policy_id"` // "" for a step without a tool
	RuleID   string      `json:"rule_id"`
	Reason   string      `json:"reason"`
	Event    Result      `json:"event"`
}

// What the service takes in one request.
const (
	maxListSteps = 50
	maxListBytes = 8 << 20
)

// Report puts steps into the ledger, in their order, by requests of as many as the
// service takes at once, each of which lands whole or not at all. With an error the
// results are those of the steps that are known to have landed.
func (r *Run) Report(ctx context.Context, steps ...Step) ([]StepResult, error) {
	results := make([]StepResult, 0, len(steps))
	for len(results) < len(steps) {
		body, n, err := listOf(steps[len(results):])
		if err != nil {
			return results, fmt.Errorf("report steps: %w", err)
		}
		answer, err := r.client.do(ctx, call{method: http.MethodPost, path: r.path() + "/steps", body: body, ingest: true})
		if err != nil {
			return results, fmt.Errorf("report steps: %w", err)
		}
		var told []StepResult
		if err := decode(answer, &told); err != nil {
			return results, fmt.Errorf("report steps: %w", err)
		}
		if len(told) != n {
			return results, fmt.Errorf("report steps: %w", badAnswer(fmt.Errorf("%d steps to %d", len(told), n)))
		}
		for i := range told {
			if told[i].Decision == 0 || told[i].Event.EventID == "" {
				return results, fmt.Errorf("report steps: %w", badAnswer(errors.New("no decision")))
			}
		}
		r.progress.note(steps[len(results) : len(results)+n]...)
		results = append(results, told...)
	}
	return results, nil
}

// listOf encodes as many of the steps as go into one request.
func listOf(steps []Step) (body []byte, n int, err error) {
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

// RunEvent is an event of a run in the ledger. Those of its start and its end have no
// Key.
type RunEvent struct {
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

type runPage struct {
	RunResult
	Events []RunEvent `json:"events"`
	Next   *int       `json:"next"`
}

// runPageEvents is how many events of a run are read at once.
const runPageEvents = 1000

func (r *Run) page(ctx context.Context, after, limit int) (page runPage, err error) {
	path := r.path() + "?after=" + strconv.Itoa(after) + "&limit=" + strconv.Itoa(limit)
	body, err := r.client.do(ctx, call{method: http.MethodGet, path: path, ingest: true})
	if err == nil {
		err = decode(body, &page)
	}
	if err == nil && page.Next != nil && *page.Next <= after {
		err = badAnswer(errors.New("pages go backwards"))
	}
	if err != nil {
		return page, fmt.Errorf("read run: %w", err)
	}
	return page, nil
}

// Events yields what the ledger has of the run, in its order. It stops at the first
// error.
func (r *Run) Events(ctx context.Context) iter.Seq2[RunEvent, error] {
	return func(yield func(RunEvent, error) bool) {
		for after := 0; ; {
			page, err := r.page(ctx, after, runPageEvents)
			if err != nil {
				yield(RunEvent{}, err)
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
