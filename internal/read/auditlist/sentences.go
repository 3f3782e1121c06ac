package auditlist

import "github.com/agentledger/agentledger/internal/sysevent"

// sentence is the text of an entry. {who} is the actor, and {member} is a member of the payload. Lists are separated by
// commas, and a member that contains the account of a user is replaced by the user's name. {name|id} is the first of these members
// that is given. A part in brackets is omitted if one of its members is null, empty or missing.
type sentence string

// sentences is the table of all kinds. The key of an entry with a transition is "kind transition" if the table contains
// it, and otherwise its kind.
func sentences() map[string]sentence {
	all := make(map[string]sentence)
	for _, part := range []map[sysevent.Kind]sentence{ofAgents(), ofSettings(), ofPeople(), ofWork()} {
		for kind, text := range part {
			all[string(kind)] = text
		}
	}
	return all
}

// ofAgents concerns agents, their keys and policies.
func ofAgents() map[sysevent.Kind]sentence {
	return map[sysevent.Kind]sentence{
		sysevent.AgentCreated: "{who} created agent {agent_id}[ ({display_name})]",
		sysevent.AgentChanged: "{who} changed agent {agent_id}[: name {display_name}][, bridge {bridge}]" +
			"[, active {active}]",
		sysevent.KeyRegistered: "{who} registered key {key_id} of agent {agent_id}, held by the {custody}",
		sysevent.KeyRetired:    "{who} retired key {key_id} of agent {agent_id}",
		sysevent.KeyRevoked: "{who} revoked key {key_id} of agent {agent_id}" +
			"[, not to be trusted from log index {compromised_from} on][, because: {reason}]",
		sysevent.IngestKeyCreated: "{who} created ingest key {key_id} ({name})[ with scopes {scopes}]",
		sysevent.IngestKeyChanged: "{who} changed ingest key {key_id}[: name {name}][, asks for approvals {asks}]",
		sysevent.IngestKeyRevoked: "{who} revoked ingest key {key_id} ({name})",
		sysevent.PolicyActivated:  "{who} activated policy {policy_id} version {policy_version}",
		sysevent.PolicyArchived:   "{who} ended policy {policy_id} version {policy_version}",
	}
}

// ofSettings concerns the organization, its log and its receivers.
func ofSettings() map[sysevent.Kind]sentence {
	return map[sysevent.Kind]sentence{
		sysevent.SettingsChanged:               "{who} changed settings: {names}[; columns of acts: {columns}][; with earlier acts: {backfilled}]",
		sysevent.LogKey:                        "{who} changed a key of the log: {transition} {vkey}",
		sysevent.LogKey + " log_key_created":   "{who} gave the log the new key {vkey}",
		sysevent.LogKey + " log_key_retired":   "{who} retired the key {vkey} of the log",
		sysevent.LogKey + " grant_key_created": "The service made the key that signs grants",
		sysevent.Clock: "{who} let the log go on at {received_at}, although its latest event was received at " +
			"{newest_received_at}[, because: {reason}]",
		sysevent.RecordsAccepted: "{who} accepted records that contradicted the log: {subjects}[, because: {reason}]",
		sysevent.Successor:       "{who} began this log as the successor of {predecessor}[, because: {reason}]",
		sysevent.Directory:       "The service listed newest checkpoints of logs in the directory",
		sysevent.EvidenceExported: "{who} exported an evidence pack of log indices {begin} to below {end}" +
			"[, manifest {manifest_sha256}]",
		sysevent.CoverageCompared: "{who} compared a record of calls from {from} until {to} with the log (file {file_sha256})",
		sysevent.EnvelopeErased:   "{who} erased the envelopes at log indices {ranges}, for reason {reason}",
		sysevent.ErasureRequested: "{who} asked for erasure {erasure_id} by {by}[ of event {event_id}]" +
			"[ of agent {agent_id}][ of trace {trace_id}], for reason {reason_code}",
		sysevent.ApprovalErased: "{who} erased the payloads of approvals {approval_ids}, for reason {reason}" +
			"[ (erasure {erasure_id})]",
		sysevent.WebhookCreated: "{who} created webhook {name|endpoint_id}[; signing secret of its Slack app: {slack_signing_secret}]",
		sysevent.WebhookChanged: "{who} changed webhook {name|endpoint_id}[: {names}][; signing secret of its Slack app: {slack_signing_secret}]",
		sysevent.WebhookChanged + " callback_key_rotated": "{who} rotated the key that signs callbacks" +
			"[, the new key is {signing_key_id}]",
		sysevent.WebhookDeleted:      "{who} deleted webhook {name|endpoint_id}",
		sysevent.WebhookDisabled:     "The service disabled webhook {name|endpoint_id}[, because: {reason}]",
		sysevent.StreamExportChanged: "{who} changed the stream export[: {names}][, from log index {from} on]",
		sysevent.StreamExportDeleted: "{who} deleted the stream export",
		sysevent.ToolKeysChanged:     "{who} changed the keys of tools[; added: {added}][; removed: {removed}]",
		sysevent.ViewSaved:           "{who} saved the view {name}[, before: {renames}]",
		sysevent.ViewRemoved:         "{who} removed the view {name}",
	}
}

// ofPeople concerns members, invitations and tokens.
func ofPeople() map[sysevent.Kind]sentence {
	return map[sysevent.Kind]sentence{
		sysevent.MemberAdded: "{account_id} became a member with role {role}[, by invitation of {invited_by}]",
		sysevent.MemberChanged: "{who} changed the membership of {account_id}: role {role_before} to {role}, " +
			"suspended {suspended_before} to {suspended}",
		sysevent.VoterKey:          "{who} changed the voter key {credential_id} of {account_id}: {transition}",
		sysevent.MemberSignIn:      "How {account_id} signs in was changed by {by}: {change}",
		sysevent.DeputyNamed:       "{who} named {deputy} as deputy of {account_id} from {from} until {until}",
		sysevent.DeputyEnded:       "{who} ended that {deputy} is the deputy of {account_id}",
		sysevent.MemberRemoved:     "{who} ended the membership of {account_id}, who had role {role}",
		sysevent.InvitationCreated: "{who} invited a person with role {role}",
		sysevent.InvitationRenewed: "{who} renewed the invitation of a person with role {role}",
		sysevent.InvitationRevoked: "{who} revoked the invitation of a person with role {role}",
		sysevent.TokenCreated: "{who} created console token {token_id} ({name}) with role {role} " +
			"until {expires_at}",
		sysevent.ShareCreated:  "{who} shared a view of acts by a link for {note} until {expires_at} ({share_id})[, which shows: {query}]",
		sysevent.ShareOpened:   "The link for {note} was opened ({share_id})",
		sysevent.ShareRevoked:  "{who} revoked the link for {note} ({share_id})",
		sysevent.SlackLinked:   "{who} linked {account_id} to user {slack_user_id} of Slack workspace {slack_team_id}",
		sysevent.SlackUnlinked: "{who} removed the link of {account_id} to user {slack_user_id} of Slack workspace {slack_team_id}",
		sysevent.TokenDeleted:  "{who} deleted console token {token_id}",
	}
}

// ofWork concerns approvals and runs.
func ofWork() map[sysevent.Kind]sentence {
	return map[sysevent.Kind]sentence{
		sysevent.Approval:                  "{who} changed approval {approval_id} to {transition}[, saying: {reason}]",
		sysevent.Approval + " requested":   "{who} asked for approval {approval_id}",
		sysevent.Approval + " pending":     "Approval {approval_id} waits for votes",
		sysevent.Approval + " voted":       "{who} voted {vote} on approval {approval_id}[ as deputy of {deputy_for}][, saying: {reason}]",
		sysevent.Approval + " approved":    "{who} decided for approval {approval_id}[ as deputy of {deputy_for}][, saying: {reason}]",
		sysevent.Approval + " denied":      "{who} denied approval {approval_id}[ as deputy of {deputy_for}][, saying: {reason}]",
		sysevent.Approval + " consumed":    "{who} used approval {approval_id}",
		sysevent.Approval + " expired":     "Approval {approval_id} expired",
		sysevent.Approval + " cancelled":   "{who} cancelled approval {approval_id}[, saying: {reason}]",
		sysevent.Approval + " revoked":     "{who} revoked approval {approval_id}[ as deputy of {deputy_for}][, saying: {reason}]",
		sysevent.Approval + " invalidated": "Approval {approval_id} became void, because the policy changed",
		sysevent.Run:                       "{who} ended run {run_id}: {transition}, {steps} steps[, error: {error}]",
		sysevent.Run + " started":          "{who} started run {run_id}[ of workflow {workflow}] by agent {agent_id}",
		sysevent.Run + " abandoned":        "The service ended run {run_id}, because nothing came from it for too long",
	}
}
