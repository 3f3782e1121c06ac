package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// canaryRequest is a request to an operation. A media type and a space before the path set the Accept header.
type canaryRequest struct{ path, body string }

// paths are requests without a body.
func paths(all ...string) (requests []canaryRequest) {
	for _, p := range all {
		requests = append(requests, canaryRequest{path: p})
	}
	return requests
}

// canaryGets are requests for stored objects, by operation. {names} stand for the organization's objects.
func canaryGets() map[string][]canaryRequest {
	const public, console, log = "/v1/public/orgs/{slug}", "/v1/console", "/o/{organization}"
	return map[string][]canaryRequest{
		"getTransparencyHead":       paths(public + "/transparency/head"),
		"getTransparencyCheckpoint": paths(public + "/transparency/checkpoint"),
		"getInclusionProof":         paths(public+"/transparency/inclusion?log_index=0", public+"/transparency/inclusion?event_id={event}"),
		"getConsistencyProof":       paths(public + "/transparency/consistency?from=1"),
		"getLogKeys":                paths(public + "/transparency/keys"),
		"getLogPolicy":              paths(public + "/transparency/policy"),
		"getBundle": paths(public+"/verify/{event}", public+"/verify/{event}?verify=1", public+"/verify/{event}?format=tlog-proof", public+"/verify/{event}?format=cose",
			public+"/verify/{step}?verify=1", "text/html "+public+"/verify/{event}", "text/html "+public+"/verify/{step}"),
		"getPublishedPolicy": paths(public + "/policies/{policy}"), "getLogPage": paths("/log/{slug}"), "getLogBadge": paths("/log/{slug}/badge"),
		"getAgentPage": paths("/log/{slug}/agent/{agent}"), "getAgentDid": paths("/v1/public/agents/{agent}/did"),
		"getAgentDidWeb":   paths("/v1/public/agents/{agent}/did.json"),
		"getDid":           paths("/v1/public/did/{did}"),
		"getLogCheckpoint": paths(log + "/checkpoint"),
		"getEntryBundle":   paths(log+"/tile/entries/000", log+"/tile/entries/000.p/5"),
		"getTile":          paths(log+"/tile/0/000", log+"/tile/0/000.p/5"),

		"getAskedApproval": paths("/v1/ingest/approvals/{approval}"), "getAccessTask": paths("/access/v1/requests/{approval}"),
		"getRun": paths("/v1/ingest/workflows/runs/{run}"), "getRunByShortPath": paths("/workflows/runs/{run}"),

		"listIngestKeys": paths(console + "/ingest-keys"), "getIngestKey": paths(console + "/ingest-keys/{key}"),
		"listAgents": paths(console + "/agents"), "getAgent": paths(console + "/agents/{agent}"), "listAgentKeys": paths(console + "/agents/{agent}/keys"),
		"listPolicies": paths(console + "/policies"), "getPolicy": paths(console + "/policies/refunds"),
		"listPolicyVersions": paths(console + "/policies/refunds/versions"),
		"listApprovals":      paths(console+"/approvals", console+"/approvals?status=pending", console+"/approvals?may_vote=true"), "getApproval": paths(console + "/approvals/{approval}"),
		"listVoterKeys":       paths(console + "/voter-keys"),
		"listDeputies":        paths(console + "/deputies"),
		"listEventsInConsole": paths(streamed(console+"/events", "q=canary")...), "getEventInConsole": paths(console+"/events/{event}", console+"/events/{step}"),
		"listActsInConsole": paths(streamed(console+"/acts", "q=canary")...), "getActInConsole": paths(console+"/acts/{event}", console+"/acts/{step}"),
		"listErasures": paths(console + "/erasures"), "getErasure": paths(console + "/erasures/{erasure}"),
		"listTraces": paths(streamed(console+"/traces", "q=canary")...), "getTrace": paths(console + "/traces/{trace}"),
		"countActs":         paths(console + "/stats?by=outcome,agent,tool,decision,rule,approver,hour,day"),
		"downloadEvidence":  paths(console+"/evidence.zip", console+"/evidence.zip?envelopes=1"),
		"listAudit":         paths(streamed(console+"/audit", "kind=ledger_approval")...),
		"listRunsInConsole": paths(console + "/runs"), "getRunInConsole": paths(console+"/runs/{run}", console+"/runs/{ended}"),
		"listWebhooks": paths(console + "/webhooks"), "getWebhookEndpoint": paths(console + "/webhooks/{webhook}"),
		"listWebhookDeliveries": paths(console + "/webhooks/{webhook}/deliveries"),
		"listTokens":            paths(console + "/tokens"), "getPlanUsage": paths(console + "/organization/plan-usage"), "listShares": paths(console + "/shares"),
		"getStreamExport": paths(console + "/stream-export"), "getWitnesses": paths(console + "/witnesses"), "getColumns": paths(console + "/columns"), "getToolKeys": paths(console + "/tool-keys"), "getViews": paths(console + "/views"), "getOrganization": paths(console + "/organization"),
		"listMembers": paths("/v1/id/orgs/{organization}/members"), "listInvitations": paths("/v1/id/orgs/{organization}/invitations"),
	}
}

// streamed returns a list, also with a filter, and both formats of its stream.
func streamed(list, filter string) []string {
	return []string{list, list + "?" + filter, list + "?format=csv", list + "?format=ndjson"}
}

// canaryPosts are requests to operations that change something and return a stored object, by operation. make is called
// before each request.
func canaryPosts(w *canaryWorld, o *canaryOrg) map[string]func() []canaryRequest {
	const ingest, console = "/v1/ingest", "/v1/console"
	one := func(path, body string) func() []canaryRequest {
		return func() []canaryRequest { return []canaryRequest{{path, body}} }
	}
	asked := func(verb, body string) func() []canaryRequest {
		return func() []canaryRequest {
			name, digest := w.ask(o, fmt.Sprint("trc-", w.calls))
			return []canaryRequest{{verb[:strings.Index(verb, "/a")] + "/approvals/" + name + verb[strings.LastIndex(verb, "/"):], strings.ReplaceAll(body, "{digest}", digest)}}
		}
	}
	all := map[string]func() []canaryRequest{
		"postEvent": func() []canaryRequest {
			e := client.Event{EventID: id.Event(fmt.Sprint("evt-new-", w.calls)), TraceID: "t", ActorPrincipal: "p", ActionKind: "tool_call", Tool: "acme.read",
				Decision: id.Allow, Payload: map[string]any{"text": inPayload}}
			return []canaryRequest{{ingest + "/events", o.event}, {ingest + "/events", w.sign(o, e)},
				{ingest + "/events", strings.Replace(o.event, string(inPayload), "another", 1)}}
		},
		"postBatch":        one(ingest+"/events/batch", o.event+"\n"+o.event+"\n"),
		"evaluatePolicy":   one(ingest+"/policy/evaluate", strings.TrimSuffix(o.question("trc-asked"), "}")+`,"request_approval":true}`),
		"evaluateAccess":   one("/access/v1/evaluation", o.access(`"resource":{"type":"t","id":"1"}`)),
		"evaluateAccesses": one("/access/v1/evaluations", o.access(`"evaluations":[{"resource":{"type":"t","id":"1"}},{}]`)),
		"askForApproval":   one(ingest+"/approvals", o.question("trc-asked")),
		"requestAccess":    func() []canaryRequest { return []canaryRequest{{"/access/v1/requests", w.accessRequest(o)}} },
		"cancelAccessTask": func() []canaryRequest {
			name, _ := w.ask(o, fmt.Sprint("trc-", w.calls))
			return []canaryRequest{{"/access/v1/requests/" + name + "/cancel", ""}}
		},
		"consumeApproval": func() []canaryRequest { return []canaryRequest{o.consumed} },
		"cancelApproval":  asked(ingest+"/approvals/cancel", ""),
		"startRun":        one(ingest+"/workflows/runs", `{"workflow":{"name":"n"},"external_run_id":"x"}`),
		"recordSteps":     one(ingest+"/workflows/runs/{run}/steps", canaryStep),
		"completeRun":     one(ingest+"/workflows/runs/{ended}/complete", `{"status":"succeeded"}`),

		"simulatePolicy": func() []canaryRequest {
			all := []canaryRequest{{console + "/policies/refunds/simulate", `{"last":1000,"version":1}`},
				{console + "/policies/refunds/simulate", `{"input":{"tool_name":"acme.refund"}}`}}
			for name := range canaryDrafts() {
				all = append(all, canaryRequest{console + "/policies/" + name + "/simulate", `{"last":1000}`})
			}
			return all
		},
		"compareCoverage": one(console+"/coverage", `{"format":"csv","file":"tool\nacme.refund\n","from":"2020-01-01T00:00:00Z","to":"2100-01-01T00:00:00Z","tool":"**"}`),
		"checkPolicy":     one(console+"/policies/check", `{"name":"n","rules":[]}`),
		"createPolicy": func() []canaryRequest {
			return []canaryRequest{{console + "/policies", fmt.Sprintf(`{"policy_id":"p-%d","name":"n","rules":[]}`, w.calls)}}
		},
		"changePolicy":   one(console+"/policies/number", `{"name":"n"}`),
		"voteOnApproval": asked(console+"/approvals/votes", `{"vote":"approve","action_digest":"{digest}"}`),
		"beginVote": func() []canaryRequest {
			name, digest := w.ask(o, fmt.Sprint("trc-", w.calls))
			return []canaryRequest{{console + "/approvals/" + name + "/votes/options", fmt.Sprintf(`{"vote":"approve","action_digest":%q}`, digest)}}
		},
		"retireVoterKey": one(console+"/voter-keys/{voterkey}", ""),
		"revokeApproval": asked(console+"/approvals/revoke", `{}`),
		"eraseEvent":     one(console+"/events/{step}/erase", `{"reason":"test_data"}`),
		"eraseMany":      one(console+"/erasures", `{"trace_id":"trc-none","reason":"test_data"}`),
		"createWebhookEndpoint": func() []canaryRequest {
			w.forgetEndpoints(o)
			return []canaryRequest{{console + "/webhooks", fmt.Sprintf(`{"url":%q,"events":["run.*"]}`, w.receiver)}}
		},
		"changeWebhookEndpoint": one(console+"/webhooks/{webhook}", `{"name":"x"}`),
		"rotateCallbackKey":     one(console+"/webhooks/callback-key/rotate", `{"overlap_hours":1}`),
		"rotateWebhookEndpoint": one(console+"/webhooks/{webhook}/rotate", `{"overlap_hours":0}`),
		"testWebhookEndpoint":   one(console+"/webhooks/{webhook}/test", ""),
		"replayWebhook": func() []canaryRequest {
			w.rebury(o)
			return paths(console + "/webhooks/msg_dead/replay")
		},
		"putStreamExport":    one(console+"/stream-export", fmt.Sprintf(`{"url":%q,"format":"ocsf","headers":{"Authorization":"Bearer x"}}`, w.receiver)),
		"testStreamExport":   one(console+"/stream-export/test", ""),
		"changeOrganization": one(console+"/organization", `{"name":"Red"}`),
		"changeAgent":        one(console+"/agents/{agent}", `{"display_name":"x"}`),
		"changeIngestKey":    one(console+"/ingest-keys/{key}", `{"name":"x"}`),
	}
	all["startRunByShortPath"] = one("/workflows/runs", `{"workflow":{"name":"n"},"external_run_id":"x"}`)
	all["recordStepsByShortPath"] = one("/workflows/runs/{run}/steps", canaryStep)
	all["completeRunByShortPath"] = one("/workflows/runs/{ended}/complete", `{"status":"succeeded"}`)
	return all
}

// forgetEndpoints deletes all endpoints except the first, because an organization has at most 20.
func (w *canaryWorld) forgetEndpoints(o *canaryOrg) {
	owner := w.session(string(o.Slug), "ops@"+string(o.Slug)+".example")
	listed, _ := w.must("GET", "/v1/console/webhooks", "", owner)["endpoints"].([]any)
	for _, e := range listed {
		if name := e.(map[string]any)["endpoint_id"].(string); name != o.webhook {
			w.must("DELETE", "/v1/console/webhooks/"+name, "", owner)
		}
	}
}

// callers are credentials, by name: "auditor" is a session and "token auditor" a token of that role.
func callers(w *canaryWorld) map[string]func() http.Header {
	all := map[string]func() http.Header{
		"nobody":     func() http.Header { return http.Header{} },
		"ingest key": func() http.Header { return w.orgs["red"].ingest() },
		"platform":   func() http.Header { return http.Header{"X-Platform-Secret": {w.secret}} },
		"blue owner": func() http.Header { return w.session("blue", "ops@blue.example") },
		"blue key":   func() http.Header { return w.orgs["blue"].ingest() },
	}
	blue := w.token("blue", "ops@blue.example", "admin")
	all["blue token"] = func() http.Header { return bearerOf(blue) }
	for _, role := range account.Roles() {
		email := string(role) + "@red.example"
		all[string(role)] = func() http.Header { return w.session("red", email) }
		if role != account.Owner {
			token := w.token("red", email, string(role))
			all["token "+string(role)] = func() http.Header { return bearerOf(token) }
		}
	}
	return all
}

// readers are the roles that may see something, according to the specification.
type readers string

const (
	members   readers = "owner admin policy_editor approver auditor member"
	payloads  readers = "owner admin auditor"
	approvals readers = "owner admin approver auditor"
	managers  readers = "owner admin"
	editors   readers = "owner admin policy_editor"
	voters    readers = "owner admin approver, by session"
	voter     readers = "approver, by session" // the role with the voter key
)

// callers returns the credentials with which these roles see it: also tokens, unless the operation rejects them.
func (r readers) callers() []string {
	roles, session := strings.CutSuffix(string(r), ", by session")
	all := strings.Fields(roles)
	for _, role := range all {
		if !session && role != "owner" { // no token is an owner
			all = append(all, "token "+role)
		}
	}
	slices.Sort(all)
	return all
}

// canaryRows is the table of what the responses of operations show, and to whom. An operation without a row is in
// showsNothing.
func canaryRows() map[string]map[canary]readers {
	return map[string]map[canary]readers{
		"getEventInConsole":     {inPayload: payloads, inStep: payloads, inTrace: members, inDecision: members},
		"listEventsInConsole":   {inTrace: members, inDecision: members},
		"getActInConsole":       {inTrace: members, inDecision: members},
		"listActsInConsole":     {inTrace: members, inDecision: members},
		"listTraces":            {inTrace: members},
		"getTrace":              {inTrace: members, inDecision: members},
		"countActs":             {inDecision: members},
		"downloadEvidence":      {inPayload: payloads, inStep: payloads, inApproval: payloads, inTrace: payloads, inDecision: payloads, inRule: payloads, inVoterKey: payloads},
		"listApprovals":         {inApproval: approvals},
		"getApproval":           {inApproval: approvals},
		"voteOnApproval":        {inApproval: voters},
		"revokeApproval":        {inApproval: voters},
		"listVoterKeys":         {inVoterKey: members},
		"listAudit":             {inVoterKey: payloads},
		"listPasskeys":          {inVoterKey: voter},
		"beginOwnPasskey":       {inVoterKey: voter},
		"beginVote":             {inVoterKey: voter},
		"getPolicy":             {inRule: members, inDecision: members},
		"simulatePolicy":        {inDecision: editors},
		"listWebhooks":          {inAddress: managers},
		"getWebhookEndpoint":    {inAddress: managers},
		"changeWebhookEndpoint": {inAddress: managers},
		"rotateWebhookEndpoint": {inAddress: managers},
		"getStreamExport":       {inAddress: managers},
		"testStreamExport":      {inAddress: managers},
	}
}

// publicRows is what strangers see of an organization with each disclosure; without a row, nothing.
func publicRows() map[string]map[string][]canary {
	return map[string]map[string][]canary{
		"getBundle": {"red": {inDecision}, "open": {inPayload, inStep, inTrace, inDecision}},
		// open publishes its policies, which is a separate setting.
		"getPublishedPolicy": {"open": {inDecision, inRule}},
	}
}

// showsNothing are the operations whose responses contain none of the texts.
const showsNothing = `compareCoverage 
findAccounts getAccessConfiguration getAccessTask requestAccess cancelAccessTask finishOpenID getAgent getAskedApproval getAsset getCheckPage getColumns putColumns getToolKeys putToolKeys getViews putView deleteView getClientPackage getClientPackages getClientsPage getDocument getErasure getEventAddress getHealth getHomePage
getIngestKey getLivez getLogBadge getLogPage getLogsPage getAgentPage getOfflineCheckPage getVerifierFile getVerifierModule
getApiAreaPage getApiPage getHelpPage getRunbooksPage
getOrganization getPlanUsage getReadyz getRun getRunByShortPath getRunInConsole getWitnesses listAgentKeys listAgents
listErasures listIngestKeys listInvitations listLoginEvents listMembers listOrganizations
getOrganizationOfService listPolicies listProviders listRunsInConsole listSessions listShares listTokens listWebhookDeliveries me previewInvitation
showClock showOrganizationStatus showStatus startOpenID acceptClock acceptInvitation activatePolicy addPasskey askForApproval askWitnesses
askWitnessesOf beginFirstPasskey beginPasskey beginVoterKey cancelApproval changeEmail changePassword checkPolicy
completeRun completeRunByShortPath confirmEmail consumeApproval correctClock createAgent createIngestKey
createOrganization createPolicy listPolicyVersions createShare createToken createWebhookEndpoint deactivatePolicy eraseEvent eraseMany evaluateAccess evaluateAccesses evaluatePolicy
finishPasskey forgotPassword foundOrganization invite login logout makeRecoveryCodes makeSnapshot removeSnapshot postBatch postEvent recordSteps
pressSlackButton recordStepsByShortPath registerAgentKey registerVoterKey reindexOrganization replayWebhook resendInvitation resetPassword revokeShare
retireAgentKey retireLogKey retireVoterKey revokeAgentKey rotateCallbackKey rotateLogKey setPassword setup startRun startRunByShortPath stepUp
switchOrganization testWebhookEndpoint useRecoveryCode putStreamExport putWitnesses changeAgent
changeIngestKey changeMember nameDeputy endDeputy listDeputies changeOrganization changePolicy operateOrganization patchAccount deletePolicyDraft
deleteStreamExport deleteToken deleteWebhookEndpoint deleteWitnesses endOtherSessions endSession removeMember
removePasskey removeSecondFactors revokeIngestKey revokeInvitation
`

// isUnanswered are the operations that return an error to every caller here.
const isUnanswered = `
acceptClock acceptInvitation activatePolicy addPasskey askWitnessesOf beginFirstPasskey beginVoterKey changeEmail changeMember
changePassword confirmEmail correctClock createIngestKey createOrganization createShare createToken
deactivatePolicy deletePolicyDraft deleteToken deleteWebhookEndpoint endSession findAccounts finishOpenID
finishPasskey forgotPassword foundOrganization getAsset getClientPackage headClientPackage getOrganizationOfService getDirectory getDirectoryEvents getEntryBundleOfSuccessor
getEventAddress getVerifierFile getVerifierModule headAsset headEventAddress headVerifierFile headVerifierModule
getLogCheckpointOfSuccessor getLogKeyStatement headLogKeyStatement getLogKeyStatementByID getLogKeyStatementByIDOfSuccessor headLogKeyStatementByID headLogKeyStatementByIDOfSuccessor getLogList getLogsPage headLogsPage getSuccessor getSuccessorOfSuccessor getTileOfSuccessor headDirectory
headDirectoryEvents headEntryBundleOfSuccessor headLogCheckpointOfSuccessor headLogList headSuccessor
headSuccessorOfSuccessor headTileOfSuccessor invite login nameDeputy endDeputy operateOrganization previewInvitation putColumns putToolKeys putView deleteView putWitnesses
registerAgentKey registerVoterKey reindexOrganization removeMember removePasskey removeSecondFactors removeSnapshot resendInvitation resetPassword revokeShare
retireAgentKey retireLogKey revokeAgentKey revokeIngestKey revokeInvitation rotateLogKey setPassword setup showOrganizationStatus startOpenID
getApiAreaPage headApiAreaPage pressSlackButton
stepUp switchOrganization useRecoveryCode
`
