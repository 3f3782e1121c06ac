package erasure

// Remainder is data that an erasure does not remove, because it cannot or because a proof needs it.
type Remainder struct {
	Code  string // for programs
	What  string
	Until string
}

// Remains returns the data that erasures leave, and until when it remains.
func Remains() []Remainder {
	return []Remainder{
		{"records", "The public record, the log entry and the list entry of each event: event_id, agent_id, key_id, tool_name, action_kind, " +
			"trace_id, policy decision, and digests of the erased texts", "permanently: the log is append-only, and anyone may have copied what is public"},
		{"service_events", "The service's own signed events: comments, reason codes and passkey signatures of approvers, workflow, external_run_id and error of runs, " +
			"and the agent_id or trace_id that was erased", "permanently, for members who may read the log"},
		{"approvals", "Approvals: agent_id, tool_name, trace_id, action_digest, and votes with their comments", "permanently, for members"},
		{"runs", "Runs: workflow, external_run_id, trace_id, error, and step_key, kind, status and tool_name of each step",
			"permanently, for members"},
		{"principal_hashes", "A salted hash of each e-mail address and account ID in the principal of an open approval",
			"the approval ends, within seven days"},
		{"callbacks", "callback_url of open approvals, and of callbacks that wait or have failed",
			"the approval ends and the callback is delivered, or 1,000 newer deliveries of the organization have failed"},
		{"index_hashes", "39 bits of a hash of each actor_principal, and two of each subject of on_behalf_of, in the index of events", "the operator runs agentledger reindex"},
		{"members", "What members wrote: policies and their tests, names and descriptions of agents, keys, webhooks and tokens, notes and queries of shared views, accounts and invitations",
			"a member changes or deletes it; events about the change are permanent"},
		{"store_files", "Bytes in files of the store", "the next compaction of an embedded store, within about an hour; in PostgreSQL until VACUUM (FULL)"},
		{"receivers", "Copies at receivers of webhooks, callbacks, mail and the stream export, including requests that are being sent now",
			"the receiver deletes them"},
		{"copies", "Backups, snapshots, logs of the database, exports and downloaded evidence packs", "whoever keeps them deletes them"},
	}
}
