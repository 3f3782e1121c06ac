package main

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// otherLimits are the limits that an organization takes from its plan.
const otherLimits = `"agents":null,"ingest_keys":null,"policies":null,"policy_versions":null,"statements_per_minute":null`

// The exact HTTP responses of the service: every endpoint and every status of the agents' and the public interface, in
// one conversation with two organizations. red has a policy that denies acme.customers.delete; blue has none. The order
// matters.
func TestInterface(t *testing.T) {
	p := startProcess(t, t.TempDir(), "tuning.reverify_pause=1h")
	d := &dialogue{t: t, server: p, values: map[string]string{}}
	red, blue := p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil)
	d.introduce(red)
	d.introduce(blue)
	p.denyTool(t.Context(), red, "acme.customers.delete")

	event := func(org foundedOrganization, name id.Event, tool id.Tool) string {
		return d.signed(org, client.Event{EventID: name, TraceID: "t-1", ActionKind: "tool_call", Tool: tool})
	}
	one, deletion, three, four := event(red, "e-1", ""), event(red, "e-2", "acme.customers.delete"), event(red, "e-3", ""), event(red, "e-4", "")

	const (
		evaluate = "POST /v1/ingest/policy/evaluate"
		events   = "POST /v1/ingest/events"
		platform = "PATCH /v1/id/platform/organizations/<red.id>"
		secret   = "X-Platform-Secret: " + testSecret
		orgs     = "GET /v1/public/orgs/"
		agents   = "GET /v1/public/agents/"

		noKey    = `{"error":"Invalid API key"}`
		mismatch = `{"error":"Organization mismatch for API key"}`
		missing  = `{"error":"Missing organization_id, agent_id, or tool_name"}`
		notFound = `{"error":"Not found"}`
		inactive = `{"error":"The organization is inactive"}`
	)
	for _, e := range []exchange{
		// Evaluate.
		{shows: "a rule decides", token: "<red.token>", request: evaluate, status: 200,
			body: `{"organization_id":"<red.id>","agent_id":"<red.agent>","tool_name":"acme.customers.delete","payload":{"amount_usd":12.5,"currency":"USD"}}`,
			want: `{"decision":"deny","policy_id":"day","rule_id":"not-this-one","reason":"for the test","engine":"rules","policy_version":1,"policy_digest":"<digest>","input_digest":"<input1>"}`},
		{shows: "the default decides", token: "<red.token>", request: evaluate, status: 200,
			body: `{"organization_id":"<red.id>","agent_id":"<red.agent>","tool_name":"acme.orders.read"}`,
			want: `{"decision":"allow","policy_id":"day","rule_id":"default","reason":"No rule matches; the policy's default is allow.","engine":"rules","policy_version":1,"policy_digest":"<digest>","input_digest":"<input2>"}`},
		{shows: "no policy is active", token: "<blue.token>", request: evaluate, status: 200,
			body: `{"organization_id":"<blue.id>","agent_id":"<blue.agent>","tool_name":"acme.customers.delete"}`,
			want: `{"decision":"allow","policy_id":"none","rule_id":"none","reason":"No policy is active.","engine":"rules","input_digest":"<input3>"}`},
		{shows: "no key", request: evaluate, body: `{}`, status: 401, want: `{"error":"Invalid ingest API key"}`},
		{shows: "a wrong key", token: "apl_live_x", request: evaluate, body: `{}`, status: 401, want: `{"error":"Invalid ingest API key"}`},
		{shows: "another organization", token: "<red.token>", request: evaluate, status: 403, want: mismatch,
			body: `{"organization_id":"<blue.id>","agent_id":"<blue.agent>","tool_name":"acme.orders.read"}`},
		{shows: "no organization", token: "<red.token>", request: evaluate, status: 422, want: missing,
			body: `{"agent_id":"<red.agent>","tool_name":"acme.orders.read"}`},
		{shows: "no agent", token: "<red.token>", request: evaluate, status: 422, want: missing,
			body: `{"organization_id":"<red.id>","tool_name":"acme.orders.read"}`},
		{shows: "no tool, for another organization", token: "<red.token>", request: evaluate, status: 422, want: missing,
			body: `{"organization_id":"<blue.id>","agent_id":"<red.agent>"}`},

		// Ingest. The activation of the policy is number 1 of red.
		{shows: "created", token: "<red.token>", request: events, header: "Idempotency-Key: order-7", body: one, status: 201,
			want: `{"event_id":"e-1","sequence_num":2,"event_hash":"<hash2>","chain_valid":true,"status":"created"}`},
		{shows: "sent again", token: "<red.token>", request: events, header: "Idempotency-Key: order-7", body: one, status: 200,
			want: `{"event_id":"e-1","status":"replayed"}`},
		{shows: "sent again without its key", token: "<red.token>", request: events, body: one, status: 200,
			want: `{"event_id":"e-1","status":"replayed"}`},
		{shows: "the policy tightens", token: "<red.token>", request: events, body: deletion, status: 201,
			want: `{"event_id":"e-2","sequence_num":3,"event_hash":"<hash3>","chain_valid":true,"status":"created","policy_decision":"deny","policy_id":"day","rule_id":"not-this-one"}`},
		{shows: "the other organization counts for itself", token: "<blue.token>", request: events, body: event(blue, "e-1", "acme.customers.delete"), status: 201,
			want: `{"event_id":"e-1","sequence_num":1,"event_hash":"<blue1>","chain_valid":true,"status":"created"}`},
		{shows: "no key", request: events, body: three, status: 401, want: noKey},
		{shows: "a wrong key", token: "<red.token>x", request: events, body: three, status: 401, want: noKey},
		{shows: "another organization", token: "<blue.token>", request: events, body: three, status: 403, want: mismatch},
		{shows: "changed after signing", token: "<red.token>", request: events, body: strings.Replace(three, `"allow"`, `"deny"`, 1), status: 422,
			want: `{"error":"Invalid signature","event_digest":"<changed>"}`},
		{shows: "signed by no key of the agent", token: "<red.token>", request: events, body: strings.Replace(three, string(red.Agent.KeyID), "key_other", 1), status: 422,
			want: `{"error":"Unknown signing key"}`},
		{shows: "not an envelope", token: "<red.token>", request: events, body: `{"organization_id":"<red.id>"}`, status: 422,
			want: `{"error":"Missing schema_version"}`},
		{shows: "not JSON", token: "<red.token>", request: events, body: `{`, status: 422, want: `{"error":"The body is not valid JSON"}`},
		{shows: "a used Idempotency-Key", token: "<red.token>", request: events, header: "Idempotency-Key: order-7", body: three, status: 422,
			want: `{"error":"Idempotency-Key was used with another event"}`},
		{shows: "a used event_id", token: "<red.token>", request: events, body: event(red, "e-1", ""), status: 422,
			want: `{"error":"event_id was used with another event"}`},
		{shows: "an unknown version", token: "<red.token>", request: events, header: "Service-Version: 2020-01-01", body: three, status: 422,
			want: `{"error":"Service-Version is not known; known versions: 2026-05-18"}`},

		// Monthly cap. Changes of settings are events of red's log, which do not count.
		{shows: "a cap is set", request: platform, header: secret, body: `{"limits":{"events_per_month":3}}`, status: 200,
			want: `{"organization_id":"<red.id>","slug":"red","name":"red","plan":"enterprise","active":true,"limits":{"events_per_month":3,` + otherLimits + `},"disclosure":"record"}`},
		{shows: "the last one under the cap", token: "<red.token>", request: events, body: three, status: 201,
			want: `{"event_id":"e-3","sequence_num":5,"event_hash":"<hash5>","chain_valid":true,"status":"created"}`},
		{shows: "one too many", token: "<red.token>", request: events, body: four, status: 429,
			want: `{"error":"Monthly event limit reached","code":"plan_limit"}`},
		{shows: "sent again at the cap", token: "<red.token>", request: events, body: three, status: 200,
			want: `{"event_id":"e-3","status":"replayed"}`},
		{shows: "the other organization has no cap", token: "<blue.token>", request: events, body: event(blue, "e-2", ""), status: 201,
			want: `{"event_id":"e-2","sequence_num":2,"event_hash":"<blue2>","chain_valid":true,"status":"created"}`},
		{shows: "the cap is taken away", request: platform, header: secret, body: `{"limits":{"events_per_month":null}}`, status: 200,
			want: `{"organization_id":"<red.id>","slug":"red","name":"red","plan":"enterprise","active":true,"limits":{"events_per_month":null,` + otherLimits + `},"disclosure":"record"}`},
		{shows: "the refused one sent again", token: "<red.token>", request: events, body: four, status: 201,
			want: `{"event_id":"e-4","sequence_num":7,"event_hash":"<hash7>","chain_valid":true,"status":"created"}`},

		// Transparency log head.
		{shows: "red's head", request: orgs + "red/transparency/head", status: 200,
			want: `{"organization_slug":"red","tree_size":7,"latest_log_index":6,"latest_leaf_hash":"<hash7>","latest_published_at":"<time7>","root_hash":"<root7>","origin":"<red.origin>","checkpoint":"<note7>"}`},
		{shows: "blue's head", request: orgs + "blue/transparency/head", status: 200,
			want: `{"organization_slug":"blue","tree_size":2,"latest_log_index":1,"latest_leaf_hash":"<blue2>","latest_published_at":"<bluetime>","root_hash":"<blueroot>","origin":"<blue.origin>","checkpoint":"<bluenote>"}`},
		{shows: "no such organization", request: orgs + "green/transparency/head", status: 404, want: notFound},

		// Verification bundle.
		{shows: "a bundle", request: orgs + "red/verify/e-1", status: 200, want: `{"version":1,"organization_id":"<red.id>","organization_slug":"red","origin":"<red.origin>","event_id":"e-1",` +
			`"sequence_num":2,"log_index":1,"event_hash":"<hash2>","entry":"<entry2>","inclusion":{"log_index":1,"tree_size":7,"root_hash":"<root7>","hashes":["<hash1>","<path2>","<path3>"]},` +
			`"previous_entry":"<entry1>","previous_inclusion":{"log_index":0,"tree_size":7,"root_hash":"<root7>","hashes":["<hash2>","<path2>","<path3>"]},` +
			`"checkpoint":"<note7>","log_key":"<red.vkey>","disclosure":"record","record":"<record2>","operator_statement":{"reverified_to":0,"reverified_at":null,"fault":null}}`},
		{shows: "a bundle of a log's first event, verified", request: orgs + "blue/verify/e-1?verify=1", status: 200, want: `{"version":1,"organization_id":"<blue.id>","organization_slug":"blue","origin":"<blue.origin>","event_id":"e-1",` +
			`"sequence_num":1,"log_index":0,"event_hash":"<blue1>","entry":"<blueentry>","inclusion":{"log_index":0,"tree_size":2,"root_hash":"<blueroot>","hashes":["<blue2>"]},` +
			`"previous_entry":null,"previous_inclusion":null,"checkpoint":"<bluenote>","log_key":"<blue.vkey>","disclosure":"record","record":"<bluerecord>",` +
			`"verification":{"inclusion_ok":true,"checkpoint_ok":true,"chain_ok":true,"record_ok":true,"signature_ok":true,"envelope_ok":null,"ok":true,"log_key_source":"bundle",` +
			`"unchecked":["organization_slug","disclosure","log_key","record.public_key","record.custody","record.received_at","record.policy","operator_statement"],"cosignatures":[],"tree_size":2,"checked_at":"<checked>","errors":[]},` +
			`"operator_statement":{"reverified_to":0,"reverified_at":null,"fault":null}}`},
		{shows: "no such event", request: orgs + "red/verify/e-5?verify=1", status: 404, want: notFound},
		{shows: "an event of another organization", request: orgs + "blue/verify/e-3", status: 404, want: notFound},
		{shows: "no such organization", request: orgs + "green/verify/e-1", status: 404, want: notFound},

		// DID documents.
		{shows: "the key of red's agent", request: agents + "<red.agent>/did", status: 200, want: `{"@context":["https://www.w3.org/ns/did/v1","https://w3id.org/security/multikey/v1"],"id":"<red.did>",` +
			`"verificationMethod":[{"id":"<red.did>#<red.multikey>","type":"Multikey","controller":"<red.did>","publicKeyMultibase":"<red.multikey>"},` +
			`{"id":"<red.did>#<red.x25519>","type":"Multikey","controller":"<red.did>","publicKeyMultibase":"<red.x25519>"}],` +
			`"authentication":["<red.did>#<red.multikey>"],"assertionMethod":["<red.did>#<red.multikey>"],"capabilityInvocation":["<red.did>#<red.multikey>"],` +
			`"capabilityDelegation":["<red.did>#<red.multikey>"],"keyAgreement":["<red.did>#<red.x25519>"]}`},
		{shows: "the key of blue's agent", request: "GET /v1/public/did/<blue.did>", status: 200, want: `{"@context":["https://www.w3.org/ns/did/v1","https://w3id.org/security/multikey/v1"],"id":"<blue.did>",` +
			`"verificationMethod":[{"id":"<blue.did>#<blue.multikey>","type":"Multikey","controller":"<blue.did>","publicKeyMultibase":"<blue.multikey>"},` +
			`{"id":"<blue.did>#<blue.x25519>","type":"Multikey","controller":"<blue.did>","publicKeyMultibase":"<blue.x25519>"}],` +
			`"authentication":["<blue.did>#<blue.multikey>"],"assertionMethod":["<blue.did>#<blue.multikey>"],"capabilityInvocation":["<blue.did>#<blue.multikey>"],` +
			`"capabilityDelegation":["<blue.did>#<blue.multikey>"],"keyAgreement":["<blue.did>#<blue.x25519>"]}`},
		{shows: "the agent itself", request: "GET /v1/public/did/did:web:log.test:v1:public:agents:<red.agent>", status: 200, want: `{"@context":["https://www.w3.org/ns/did/v1","https://w3id.org/security/multikey/v1"],` +
			`"id":"did:web:log.test:v1:public:agents:<red.agent>","verificationMethod":[{"id":"did:web:log.test:v1:public:agents:<red.agent>#<red.key>","type":"Multikey",` +
			`"controller":"did:web:log.test:v1:public:agents:<red.agent>","publicKeyMultibase":"<red.multikey>"}],` +
			`"authentication":["did:web:log.test:v1:public:agents:<red.agent>#<red.key>"],"assertionMethod":["did:web:log.test:v1:public:agents:<red.agent>#<red.key>"]}`},
		{shows: "no such agent", request: agents + "agt_nobody/did", status: 404, want: notFound},
		{shows: "a key that is nobody's", request: "GET /v1/public/did/did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp", status: 404, want: notFound},
		{shows: "an agent of another host", request: "GET /v1/public/did/did:web:other.test:v1:public:agents:<red.agent>", status: 404, want: notFound},

		// An inactive organization accepts nothing and shows everything.
		{shows: "red is made inactive", request: platform, header: secret, body: `{"active":false}`, status: 200,
			want: `{"organization_id":"<red.id>","slug":"red","name":"red","plan":"enterprise","active":false,"limits":{"events_per_month":null,` + otherLimits + `},"disclosure":"record"}`},
		{shows: "inactive, event", token: "<red.token>", request: events, body: event(red, "e-5", ""), status: 403, want: inactive},
		{shows: "inactive, event sent again", token: "<red.token>", request: events, body: one, status: 403, want: inactive},
		{shows: "inactive, evaluate", token: "<red.token>", request: evaluate, body: `{}`, status: 403, want: inactive},
		{shows: "inactive, head", request: orgs + "red/transparency/head", status: 200,
			want: `{"organization_slug":"red","tree_size":8,"latest_log_index":7,"latest_leaf_hash":"<hash8>","latest_published_at":"<time8>","root_hash":"<root8>","origin":"<red.origin>","checkpoint":"<note8>"}`},
		{shows: "the other organization stays active", token: "<blue.token>", request: events, body: event(blue, "e-3", ""), status: 201,
			want: `{"event_id":"e-3","sequence_num":3,"event_hash":"<blue3>","chain_valid":true,"status":"created"}`},
		{shows: "red is made active", request: platform, header: secret, body: `{"active":true}`, status: 200,
			want: `{"organization_id":"<red.id>","slug":"red","name":"red","plan":"enterprise","active":true,"limits":{"events_per_month":null,` + otherLimits + `},"disclosure":"record"}`},
		{shows: "active again", token: "<red.token>", request: events, body: event(red, "e-6", ""), status: 201,
			want: `{"event_id":"e-6","sequence_num":10,"event_hash":"<hash10>","chain_valid":true,"status":"created"}`},
	} {
		d.hold(e)
	}
}
