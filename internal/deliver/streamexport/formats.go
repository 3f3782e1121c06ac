package streamexport

import (
	"cmp"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
)

// The constants of OCSF 1.4.0, API Activity. The activity is "other", because the name of a tool does not indicate
// whether it creates, reads, updates or deletes.
const (
	ocsfVersion       = "1.4.0"
	ocsfCategory      = 6 // application activity
	ocsfClass         = 6003
	ocsfActivity      = 99
	ocsfInformational = 1
	ocsfMedium        = 3
	ocsfSuccess       = 1
	ocsfFailure       = 2
)

// ocsfEvent returns an event as OCSF API Activity. Members that OCSF does not define are in unmapped.
func (c *codec) ocsfEvent(e *follow.Event) members {
	r := &e.Record
	severity, status, word := int64(ocsfInformational), int64(ocsfSuccess), "Success"
	if r.Policy.Effective == id.Deny {
		severity, status, word = ocsfMedium, ocsfFailure, "Failure"
	}
	actor := members{}.text("app_name", "agent").text("app_uid", string(r.AgentID))
	activity, api := "erased", members{}.text("operation", "erased")
	if v := e.Envelope; v != nil {
		activity = v.ActionKind
		api = members{}.text("operation", cmp.Or(string(v.Tool), v.ActionKind))
		if v.ActorPrincipal != "" {
			actor = actor.object("user", members{}.text("uid", v.ActorPrincipal))
		}
	}
	return members{}.
		number("activity_id", ocsfActivity).text("activity_name", activity).
		number("category_uid", ocsfCategory).text("category_name", "Application Activity").
		number("class_uid", ocsfClass).text("class_name", "API Activity").
		number("type_uid", ocsfClass*100+ocsfActivity).
		number("severity_id", severity).number("status_id", status).text("status", word).
		text("status_code", r.Policy.Effective.String()).
		number("time", int64(r.ReceivedAt)).
		object("metadata", ocsfMetadata(e)).
		object("actor", actor).object("api", api).
		object("src_endpoint", members{}.text("uid", string(r.AgentID)).text("svc_name", "agent")).
		object("unmapped", c.facts(e))
}

func ocsfMetadata(e *follow.Event) members {
	m := members{}.
		text("version", ocsfVersion).
		object("product", members{}.text("name", "agentledger").text("vendor_name", "agentledger")).
		text("uid", string(e.Record.EventID)).
		number("sequence", int64(e.Record.SequenceNum)).
		text("log_name", string(e.Record.Origin))
	if v := e.Envelope; v != nil {
		m = m.text("correlation_uid", string(v.TraceID))
	}
	return m
}

// cloudType is the type of all events in CloudEvents.
const cloudType = "agentledger.event.stored"

// cloudEvent returns an event as CloudEvents 1.0 in JSON format.
func (c *codec) cloudEvent(e *follow.Event) members {
	return members{}.
		text("specversion", "1.0").text("id", string(e.Record.EventID)).text("source", cloudSource(e)).
		text("type", cloudType).text("subject", string(e.Record.AgentID)).
		text("time", e.Record.ReceivedAt.Time().Format(time.RFC3339Nano)).
		text("datacontenttype", "application/json").
		object("data", c.facts(e))
}

// cloudAttributes returns the attributes that OpenTelemetry defines for CloudEvents.
func cloudAttributes(e *follow.Event) members {
	return members{}.
		text("cloudevents.event_id", string(e.Record.EventID)).text("cloudevents.event_source", cloudSource(e)).
		text("cloudevents.event_spec_version", "1.0").text("cloudevents.event_type", cloudType).
		text("cloudevents.event_subject", string(e.Record.AgentID))
}

// cloudSource returns the origin of the log as a reference without a scheme.
func cloudSource(e *follow.Event) string { return "//" + string(e.Record.Origin) }

// facts returns the members of an event that both formats contain. A payload is its exact text, because OTLP has no
// exact numbers.
func (c *codec) facts(e *follow.Event) members {
	r := &e.Record
	m := members{}.
		number("log_index", int64(e.Index)).
		text("event_id", string(r.EventID)).
		text("event_digest", r.EventDigest.String()).
		text("agent_id", string(r.AgentID)).
		text("key_id", string(r.KeyID)).
		text("signer", string(r.Signer)).
		text("received_at", r.ReceivedAt.String()).
		text("declared", r.Policy.Declared.String()).
		text("effective", r.Policy.Effective.String()).
		text("policy_id", r.Policy.PolicyID).
		text("rule_id", r.Policy.RuleID).
		text("approval_id", r.Policy.ApprovalID)
	v := e.Envelope
	if v == nil {
		return m.text("envelope", "erased")
	}
	m = m.text("trace_id", string(v.TraceID)).
		text("tool_name", string(v.Tool)).
		text("action_kind", v.ActionKind).
		text("actor_type", v.ActorType).
		text("actor_principal", v.ActorPrincipal).
		text("emitted_at", v.EmittedAt.Format(time.RFC3339Nano))
	if c.payloads {
		m = m.text("payload", string(v.Payload))
	}
	return m
}
