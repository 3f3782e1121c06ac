package vectors

import (
	"strings"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/id"
)

// forged are bundles of logs that accepted and signed something wrong.
func (m *maker) forged() {
	forge := func(name, signs string, f forgery) {
		l := newLedger(m, 1, f)
		m.bundle("logged: "+name, in{"bundle": m.text(l.bundle(4, 7, id.DiscloseFull)), "key": l.vkey()}, signs)
	}
	member := func(name string, value any) func(map[string]any) { return func(e map[string]any) { e[name] = value } }
	exact := map[string]any{"$tagged": true, "id": map[string]any{"$number": "1915883588174806058"}, "o": map[string]any{"$object": map[string]any{"$number": "5"}}}
	forge("exact number", "++++++", forgery{unsigned: member("payload", exact)})
	forge("exact number of another value", "+++++-", forgery{unsigned: member("payload", exact), envelope: func(text string) string {
		return strings.Replace(text, "1915883588174806058", "1915883588174806059", 1)
	}})
	forge("tag that is malformed, which no verifier reads", "++++++", forgery{unsigned: member("payload", map[string]any{"$tagged": true, "id": map[string]any{"$number": "5"}})})
	forge("whole number as a double", "++++++", forgery{unsigned: member("payload", map[string]any{"x": 1e21, "y": 0.1})})
	forge("organization_id of the envelope in upper case", "++++++", forgery{unsigned: member("organization_id", strings.ToUpper(id.Organization{0: 0xab, 15: 1}.String()))})
	forge("signature member of another length than the record's", "++++++", forgery{signed: member("sig_value_b64", strings.Repeat("A", 86)+"==")})
	forge("signature of another digest", "++++-+", forgery{record: func(r *event.Record) {
		sig := key(m.t, "agent 1").Sign([]byte("another"))
		r.SigValueB64 = b64(sig[:])
	}})
	forge("signature by another key", "++++-+", forgery{record: func(r *event.Record) {
		public := key(m.t, "agent 2").Public().Bytes()
		r.PublicKey = did.Multikey(public)
	}})
	forge("form told wrongly", "++++-+", forgery{form: event.FormCanonical, record: func(r *event.Record) { r.SigForm = "digest" }})
	forge("another digest", "++++--", forgery{record: func(r *event.Record) { r.EventDigest = flipped(r.EventDigest) }})
	forge("key of small order", "++++-+", forgery{record: func(r *event.Record) { r.PublicKey = did.Multikey([32]byte{1}) }})
	forge("signature without padding", "++++-+", forgery{record: func(r *event.Record) { r.SigValueB64 = strings.TrimRight(r.SigValueB64, "=") }})
	forge("signature with bits in the padding", "++++-+", forgery{record: func(r *event.Record) { r.SigValueB64 = paddingBits(r.SigValueB64) }})
	forge("key in another base", "++++-+", forgery{record: func(r *event.Record) { r.PublicKey = "Z" + r.PublicKey[1:] }})
	forge("key cut", "++++-+", forgery{record: func(r *event.Record) { r.PublicKey = r.PublicKey[:47] }})
	forge("record of another event_id than the envelope", "+++++-", forgery{record: func(r *event.Record) { r.EventID = "evt_9" }})
	forge("record of another origin", "+++-++", forgery{record: func(r *event.Record) { r.Origin = "log.example/o/other" }})
	forge("record of another sequence_num", "+++-++", forgery{record: func(r *event.Record) { r.SequenceNum = 4 }})
	forge("record of another agent", "+++++-", forgery{record: func(r *event.Record) { r.AgentID = "agt_2" }})
	forge("record of another declared decision", "+++++-", forgery{record: func(r *event.Record) { r.Policy.Declared = id.Deny }})
	forge("record with the traceparent of its request", "++++++", forgery{record: func(r *event.Record) {
		r.Traceparent, _ = event.ParseTraceparent(someParent)
	}})
	forge("record with on_behalf_of verified", "++++++", forgery{record: func(r *event.Record) { r.OnBehalfOf = event.Verified }})
	m.results(forge)
	for name, c := range ordered(map[string][2]string{
		"record with a space":                               {`:`, `: `},
		"record with a member more":                         {`"v":1`, `"v":1,"w":1`},
		"record with a traceparent in upper case":           {`,"v":1`, `,"traceparent":"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01","v":1`},
		"record with a traceparent of another version":      {`,"v":1`, `,"traceparent":"01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","v":1`},
		"record with a traceparent of version 00 with more": {`,"v":1`, `,"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x","v":1`},
		"record with a traceparent without a trace":         {`,"v":1`, `,"traceparent":"00-00000000000000000000000000000000-00f067aa0ba902b7-01","v":1`},
		"record with a traceparent without a span":          {`,"v":1`, `,"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01","v":1`},
		"record with a traceparent that is empty":           {`,"v":1`, `,"traceparent":"","v":1`},
		"record with a traceparent that is null":            {`,"v":1`, `,"traceparent":null,"v":1`},
		"record with a traceparent in another place":        {`,"received_at"`, `,"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","received_at"`},
		"record with on_behalf_of claimed":                  {`"organization_id"`, `"on_behalf_of":"claimed","organization_id"`},
		"record with on_behalf_of that is empty":            {`"organization_id"`, `"on_behalf_of":"","organization_id"`},
		"record with on_behalf_of that is null":             {`"organization_id"`, `"on_behalf_of":null,"organization_id"`},
		"record with on_behalf_of that is an object":        {`"organization_id"`, `"on_behalf_of":{},"organization_id"`},
		"record with on_behalf_of in another place":         {`,"v":1`, `,"on_behalf_of":"verified","v":1`},
		"record with a member twice":                        {`"v":1`, `"v":1,"v":1`},
		"record without a member":                           {`"signer":"agent",`, ``},
		"record of version 2":                               {`"v":1`, `"v":2`},
		"record of another signer":                          {`"signer":"agent"`, `"signer":"robot"`},
		"record of another custody":                         {`"custody":"agent"`, `"custody":"nobody"`},
		"record of another form":                            {`"sig_form":"digest"`, `"sig_form":"both"`},
		"record with a time of seconds":                     {`"received_at":"2026-11-20T12:00:00.004Z"`, `"received_at":"2026-11-20T12:00:00Z"`},
		"record with a day that there is not":               {`2026-11-20`, `2026-02-30`},
		"record with digest in upper case":                  {`"event_digest":"`, `"event_digest":"F`},
		"record with an empty text for null":                {`"engine":null`, `"engine":""`},
		"record with limits that are no list":               {`"limits":null`, `"limits":{}`},
		"record with a line end behind":                     {`"v":1}`, "\"v\":1}\n"},
		"record with policy_version 0":                      {`"policy_version":null`, `"policy_version":0`},
		"record with a digest of zeros":                     {`"policy_digest":null`, `"policy_digest":"` + strings.Repeat("0", 64) + `"`},
		"record evaluated at the epoch":                     {`"evaluated_at":null`, `"evaluated_at":"1970-01-01T00:00:00.000Z"`},
		"record evaluated and limits null":                  {`"evaluated":false`, `"evaluated":true`},
		"record with limits of 9 levels":                    {`"limits":null`, `"limits":` + strings.Repeat("[", 9) + strings.Repeat("]", 9)},
		"record with intent null":                           {`"limits"`, `"intent":null,"limits"`},
		"record with intent empty":                          {`"limits"`, `"intent":"","limits"`},
		"record with intent a number":                       {`"limits"`, `"intent":1,"limits"`},
		"record with agent_id null":                         {`"agent_id":"agt_1"`, `"agent_id":null`},
	}) {
		forge(name, "+++-00", forgery{text: func(r string) string { return strings.Replace(r, c[0], c[1], 1) }})
	}
	for name, c := range ordered(map[string][2]string{
		"record with limits though not evaluated": {`"limits":null`, `"limits":[]`},
		"record with limits of 8 levels":          {`"limits":null`, `"limits":` + strings.Repeat("[", 8) + strings.Repeat("]", 8)},
		"record without an ingest key":            {`"ingest_key_id":"ik_1"`, `"ingest_key_id":null`},
	}) {
		forge(name, "++++++", forgery{text: func(r string) string { return strings.Replace(r, c[0], c[1], 1) }})
	}
	forge("envelope without tool_name", "++++++", forgery{unsigned: func(e map[string]any) { delete(e, "tool_name") }})
	forge("envelope with names of the server's", "++++++", forgery{unsigned: member("action_kind", "ledger_run")})
	forge("envelope with a principal of 256 characters", "++++++", forgery{unsigned: member("actor_principal", strings.Repeat("😀", 256))})
	forge("envelope at 9 digits of a second", "++++++", forgery{unsigned: member("emitted_at", "2024-02-29T23:59:59.123456789Z")})
	for name, f := range ordered(map[string]func(map[string]any){
		"tool_name null":     member("tool_name", nil),
		"agent_id null":      member("agent_id", nil),
		"257 characters":     member("actor_principal", strings.Repeat("é", 257)),
		"leap second":        member("emitted_at", "2016-12-31T23:59:60Z"),
		"10 digits":          member("emitted_at", "2024-02-29T23:59:59.1234567890Z"),
		"event_id":           member("event_id", "evt_9"),
		"agent_id":           member("agent_id", "agt_9"),
		"organization":       member("organization_id", id.Organization{0: 0xab, 15: 2}.String()),
		"policy_decision":    member("policy_decision", "deny"),
		"schema_version":     member("schema_version", 2),
		"emitted_at":         member("emitted_at", "2026-11-20T12:00:00+00:00"),
		"date":               member("emitted_at", "2026-02-30T12:00:00Z"),
		"actor_type":         member("actor_type", "Agent"),
		"tool_name":          member("tool_name", "acme..read"),
		"payload is a list":  member("payload", []any{}),
		"actor_principal":    member("actor_principal", "a\x01b"),
		"no trace_id":        func(e map[string]any) { delete(e, "trace_id") },
		"trace_id of a dot":  member("trace_id", "."),
		"decision of a word": member("policy_decision", "maybe"),
	}) {
		forge("envelope of another kind: "+name, "+++++-", forgery{unsigned: f})
	}
	forge("envelope without a signature", "+++++-", forgery{signed: func(e map[string]any) { delete(e, "sig_value_b64") }})
	forge("envelope of another algorithm", "+++++-", forgery{signed: member("sig_alg", "ed448")})
	forge("another genesis in the middle", "++-+++", forgery{entry: func(e *event.Entry) { e.Prev = event.Genesis("log.example/o/ab000000-0000-0000-0000-000000000001") }})
	forge("number of the entry before", "-+-+++", forgery{entry: func(e *event.Entry) { e.Seq = 4 }})
	forge("another record hash", "+++-++", forgery{entry: func(e *event.Entry) { e.Record = flipped(e.Record) }})
	first := &ledger{m: m, org: id.Organization{0: 0xab, 15: 1}, origin: logName, log: key(m.t, logName), agent: key(m.t, "agent 1")}
	first.add(forgery{entry: func(e *event.Entry) { e.Prev = event.Genesis("log.example/o/other") }})
	m.bundle("logged: first entry with another genesis", in{"bundle": m.text(first.bundle(0, 1, id.DiscloseFull)), "key": first.vkey()}, "++-+++")
}
