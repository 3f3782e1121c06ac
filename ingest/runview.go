package ingest

import (
	"strconv"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/jcs"
)

// appendStarted appends the answer to a run's start.
func appendStarted(b []byte, run *workflow.Run, started *workflow.Placed) []byte {
	b = jcs.AppendString(append(b, `{"run_id":`...), string(run.ID))
	b = jcs.AppendString(append(b, `,"trace_id":`...), string(run.Trace))
	b = jcs.AppendString(append(b, `,"status":`...), string(run.Status))
	b = jcs.AppendString(append(b, `,"agent_id":`...), string(run.Agent))
	b = appendPlaced(append(b, `,"event":{`...), started)
	return append(b, `}}`...)
}

// appendPlaced appends the members of an event's place, as event ingest has them.
func appendPlaced(b []byte, p *workflow.Placed) []byte {
	b = jcs.AppendString(append(b, `"event_id":`...), string(p.Event))
	b = strconv.AppendUint(append(b, `,"sequence_num":`...), p.Index.Sequence(), 10)
	b = jcs.AppendString(append(b, `,"event_hash":`...), p.Hash.String())
	b = strconv.AppendBool(append(b, `,"chain_valid":`...), p.ChainValid)
	if p.Replayed {
		return append(b, `,"status":"replayed"`...)
	}
	return append(b, `,"status":"created"`...)
}

// appendRecorded appends the answer to one step or a list of steps.
func appendRecorded(b []byte, all []workflow.Recorded, list bool) []byte {
	if list {
		b = append(b, '[')
	}
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		p := &all[i].Policy
		b = jcs.AppendString(append(b, `{"decision":`...), p.Effective.String())
		b = appendOrNull(append(b, `,"policy_id":`...), p.PolicyID)
		b = appendOrNull(append(b, `,"rule_id":`...), p.RuleID)
		b = jcs.AppendString(append(b, `,"reason":`...), all[i].Reason)
		b = appendPlaced(append(b, `,"event":{`...), &all[i].Placed)
		b = appendConsumed(append(b, '}'), all[i].Consumed)
		b = append(b, '}')
	}
	if list {
		b = append(b, ']')
	}
	return b
}

// appendConsumed appends the approval that a step consumed, if it did.
func appendConsumed(b []byte, c *workflow.Consumed) []byte {
	if c == nil {
		return b
	}
	b = jcs.AppendString(append(b, `,"approval":{"approval_id":`...), string(c.Approval))
	b = appendOrNull(append(b, `,"status":"consumed","grant":`...), c.Grant)
	return append(b, '}')
}

// appendEnded appends the answer to a run's end.
func appendEnded(b []byte, run *workflow.Run) []byte {
	b = jcs.AppendString(append(b, `{"run_id":`...), string(run.ID))
	b = jcs.AppendString(append(b, `,"status":`...), string(run.Status))
	return append(appendResult(b, run), '}')
}

// appendResult appends the result of a run, or its counts so far.
func appendResult(b []byte, run *workflow.Run) []byte {
	r := &run.Result
	b = strconv.AppendInt(append(b, `,"steps_recorded":`...), int64(r.Recorded), 10)
	b = appendNumber(append(b, `,"steps_planned":`...), r.Planned)
	b = appendNumber(append(b, `,"gap":`...), r.Gap)
	b = strconv.AppendInt(append(b, `,"events_recorded":`...), int64(r.Events), 10)
	if r.Root == (id.Hash{}) {
		return append(b, `,"run_root":null`...)
	}
	return jcs.AppendString(append(b, `,"run_root":`...), r.Root.String())
}

func appendNumber(b []byte, n *int) []byte {
	if n == nil {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, int64(*n), 10)
}

func appendOrNull[T ~string](b []byte, s T) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return jcs.AppendString(b, string(s))
}

func appendHash(b []byte, h *id.Hash) []byte {
	if h == nil {
		return append(b, "null"...)
	}
	return jcs.AppendString(b, h.String())
}

func appendInstant(b []byte, i id.Instant) []byte {
	if i == 0 {
		return append(b, "null"...)
	}
	return jcs.AppendString(b, i.String())
}

// appendWholeRun appends all that is told of a run.
func appendWholeRun(b []byte, run *workflow.Run, events []workflow.Event, next int, slug id.Slug) []byte {
	b = jcs.AppendString(append(b, `{"run_id":`...), string(run.ID))
	b = jcs.AppendString(append(b, `,"status":`...), string(run.Status))
	b = jcs.AppendString(append(b, `,"agent_id":`...), string(run.Agent))
	b = jcs.AppendString(append(b, `,"trace_id":`...), string(run.Trace))
	b = jcs.AppendString(append(b, `,"workflow":{"name":`...), run.Workflow.Name)
	b = appendOrNull(append(b, `,"version":`...), run.Workflow.Version)
	b = appendOrNull(append(b, `,"tool":`...), run.Workflow.Tool)
	b = appendOrNull(append(b, `},"external_run_id":`...), run.External)
	b = appendHash(append(b, `,"input_digest":`...), run.InputDigest)
	b = appendHash(append(b, `,"output_digest":`...), run.Ending.OutputDigest)
	b = appendOrNull(append(b, `,"error":`...), run.Ending.Error)
	b = appendInstant(append(b, `,"started_at":`...), run.StartedAt)
	b = appendInstant(append(b, `,"last_at":`...), run.LastAt)
	b = appendInstant(append(b, `,"ended_at":`...), run.EndedAt)
	b = append(appendResult(b, run), `,"events":[`...)
	for i := range events {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendRunEvent(b, &events[i])
	}
	b = append(b, `],"next":`...)
	if next == 0 {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, int64(next), 10)
	}
	return appendLinks(b, run.ID, slug)
}

func appendRunEvent(b []byte, e *workflow.Event) []byte {
	b = jcs.AppendString(append(b, `{"event_id":`...), string(e.Event))
	b = jcs.AppendString(append(b, `,"action_kind":`...), e.Kind)
	b = strconv.AppendUint(append(b, `,"sequence_num":`...), e.Index.Sequence(), 10)
	b = jcs.AppendString(append(b, `,"event_hash":`...), e.Hash.String())
	b = appendInstant(append(b, `,"received_at":`...), e.ReceivedAt)
	if e.Step == nil {
		return append(b, '}')
	}
	b = jcs.AppendString(append(b, `,"step_key":`...), e.Step.Key)
	b = strconv.AppendInt(append(b, `,"attempt":`...), int64(e.Step.Attempt), 10)
	b = jcs.AppendString(append(b, `,"status":`...), e.Step.Status)
	b = appendOrNull(append(b, `,"tool_name":`...), e.Step.Tool)
	b = jcs.AppendString(append(b, `,"decision":`...), e.Decision.String())
	return append(b, '}')
}

// appendLinks appends the addresses of a run and of the verification of its events, and
// ends the object. {event_id} stands for the id of an event.
func appendLinks(b []byte, name workflow.ID, slug id.Slug) []byte {
	self := "/v1/ingest/workflows/runs/" + string(name)
	b = jcs.AppendString(append(b, `,"links":{"self":`...), self)
	b = jcs.AppendString(append(b, `,"steps":`...), self+"/steps")
	b = jcs.AppendString(append(b, `,"complete":`...), self+"/complete")
	b = jcs.AppendString(append(b, `,"verify":`...), "/v1/public/orgs/"+string(slug)+"/verify/{event_id}?verify=1")
	return append(b, `}}`...)
}
