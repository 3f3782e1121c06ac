package status

import (
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/backup"
)

// States of a service.
const (
	Good      = "good"
	Attention = "attention" // there are findings
)

// Report is the state of a service, as the platform call answers it.
type Report struct {
	State    string     `json:"state"`
	At       id.Instant `json:"at"`
	Findings []Finding  `json:"findings"` // the gravest first

	Ready         bool   `json:"ready"`
	UnreadyReason string `json:"unready_reason,omitempty"`
	ReadOnly      bool   `json:"read_only"`

	Program   Program   `json:"program"`
	Store     Store     `json:"store"`
	Events    Events    `json:"events"`
	Ledgers   Ledgered  `json:"ledgers"`
	Anchors   Anchors   `json:"anchors"`
	Witnesses Witnesses `json:"witnesses"`
	Webhooks  *Webhooks `json:"webhooks"` // nil when the store does not answer
	Exports   Exports   `json:"stream_exports"`
	Archive   *Archive  `json:"archive"` // nil without one
	Clock     Clock     `json:"clock"`
	Nodes     []Node    `json:"nodes"` // none for a process that serves alone
	Volumes   []Volume  `json:"volumes"`

	CertificateEndsAt *id.Instant  `json:"certificate_ends_at"` // nil without TLS
	Backup            *backup.Note `json:"backup"`              // nil for none
	BackupUnread      bool         `json:"-"`                   // there is a note that can't be read

	Worst []Ledger `json:"worst_ledgers"` // at most twenty

	increases map[string]float64 // of counters, lately
	least     map[string]float64 // of lags, lately
}

// Program says what runs and since when.
type Program struct {
	Version       string     `json:"version"`
	Go            string     `json:"go"`
	StartedAt     id.Instant `json:"started_at"`
	UptimeSeconds int64      `json:"uptime_seconds"`
}

// Store is the state of the engine. Counters are since the start.
type Store struct {
	Engine              string  `json:"engine"`     // embedded or postgresql
	Format              int     `json:"format"`     // of the files, or the version of the schema
	DiskBytes           uint64  `json:"disk_bytes"` // 0 for PostgreSQL
	OldestAppendSeconds float64 `json:"oldest_append_seconds"`
	AppendFailures      uint64  `json:"append_failures"` // those that are the disk's
	StaleAnswers        uint64  `json:"stale_answers"`
	LateRequests        uint64  `json:"late_requests"`
}

// Events counts the events of all ledgers, as the re-verification last looked at them.
type Events struct {
	CountedAt         *id.Instant `json:"counted_at"` // of that look, also for faults; nil before the first
	Total             uint64      `json:"total"`
	Queued            uint64      `json:"queued"`
	QueueLimit        uint64      `json:"queue_limit"`
	NotReverified     uint64      `json:"not_reverified"`
	ReverifyLagSecond float64     `json:"reverify_lag_seconds"`
}

// Ledgered counts ledgers with a known fault, by its level.
type Ledgered struct {
	Faulty       map[string]uint64 `json:"faulty"`
	Missing      uint64            `json:"missing"`
	AheadOfClock uint64            `json:"ahead_of_clock"`
	InMemory     uint64            `json:"in_memory"`
	FaultsFound  uint64            `json:"faults_found"` // since the start
	BadProofs    uint64            `json:"bad_proofs"`   // since the start
}

// Anchors is the state of the newest shown checkpoints.
type Anchors struct {
	LagSeconds   float64 `json:"lag_seconds"`
	JournalBytes uint64  `json:"journal_bytes"`
	Lost         uint64  `json:"lost"` // since the start
}

// Witnesses is how far the cosignatures are.
type Witnesses struct {
	WaitingLedgers uint64  `json:"waiting_ledgers"`
	WaitSeconds    float64 `json:"wait_seconds"`   // of the ledger that waits longest
	Contradictions uint64  `json:"contradictions"` // since the start
	// OldestQuorumSeconds is how long ago a quorum cosigned the log for which that is longest ago.
	OldestQuorumSeconds float64  `json:"oldest_quorum_seconds"`
	Resting             []string `json:"resting"` // names of witnesses that are left alone
}

// Webhooks counts the deliveries that are due.
type Webhooks struct {
	Due  int  `json:"due"`
	More bool `json:"more"` // there may be more
}

// Exports is how far the stream exports of all organizations are behind.
type Exports struct {
	LagSeconds float64   `json:"lag_seconds"`
	LagEvents  uint64    `json:"lag_events"`
	Behind     []id.Slug `json:"behind"` // the organizations with the oldest unsent events, at most ten
}

// Archive is the state of the object store that holds texts of old events.
type Archive struct {
	MovedBundles   uint64  `json:"moved_bundles"`           // since the start
	Damaged        uint64  `json:"damaged"`                 // reads of wrong or missing objects since the start
	WaitSeconds    float64 `json:"oldest_waiting_seconds"`  // since the oldest bundle that could not be moved was due
	ErasureSeconds float64 `json:"erasure_waiting_seconds"` // of the oldest erasure that waits for objects
}

// Clock says whether the machine's clock is trusted.
type Clock struct {
	Held          bool    `json:"held"`
	OffsetSeconds float64 `json:"offset_seconds"`
}

// Node is one of several nodes of the service, as the node that answers sees it.
type Node struct {
	ID             string  `json:"node_id"` // of its run, as X-Agentledger-Node has it
	Self           bool    `json:"self"`    // it answers
	Host           string  `json:"host"`    // and port, of its internal listener
	Version        string  `json:"version"`
	Leaving        bool    `json:"leaving"`          // it gets no shards: it is being stopped, or not prepared yet
	BeatAgeSeconds float64 `json:"beat_age_seconds"` // since its newest beat was seen
	Shards         int     `json:"shards"`           // of 1,024 that it owns
}

// Ledger is one of those that are not well, or that wait for witnesses.
type Ledger struct {
	OrganizationID id.Organization `json:"organization_id,omitempty"` // "" when it can't be read, as the next
	Slug           id.Slug         `json:"slug,omitempty"`
	Origin         id.Origin       `json:"origin,omitempty"`
	Size           id.Index        `json:"size"`
	NewestEventAt  *id.Instant     `json:"newest_event_at"` // the age of its head; nil without events
	Level          string          `json:"level,omitempty"`
	Reason         string          `json:"reason,omitempty"` // of the level, for the operator alone
	WaitSeconds    float64         `json:"witness_wait_seconds"`
}

// setFigures sets all that metrics tell.
func (r *Report) setFigures(all figures, engine string, increases map[string]float64) {
	r.increases = increases
	count := func(name string) uint64 { return uint64(max(0, all.sumOf(name))) }
	totals := countAll(all)
	r.Store = Store{Engine: engine, Format: int(count("agentledger_store_format")),
		DiskBytes: count("agentledger_store_disk_bytes"), AppendFailures: uint64(totals[appendFailures]),
		OldestAppendSeconds: all.sumOf("agentledger_append_oldest_seconds"),
		StaleAnswers:        count(staleAnswers), LateRequests: count(lateRequests)}
	lag := count("agentledger_reverify_lag_events")
	r.Events = Events{Total: count("agentledger_reverified_position_events") + lag, NotReverified: lag,
		Queued: count("agentledger_queue_events"), ReverifyLagSecond: all.sumOf(reverifyLag),
		QueueLimit: uint64(all.valuesBy("agentledger_queue_limit_events", "bound")["all"])}
	r.Ledgers = Ledgered{Missing: count("agentledger_missing_ledgers"), Faulty: make(map[string]uint64),
		AheadOfClock: count("agentledger_ledgers_ahead_of_clock"), InMemory: count("agentledger_resident_ledgers"),
		FaultsFound: count(faultsFound), BadProofs: count(badProofs)}
	for level, n := range all.valuesBy("agentledger_faulty_ledgers", "level") {
		r.Ledgers.Faulty[level] = uint64(n)
	}
	r.Anchors = Anchors{LagSeconds: all.sumOf("agentledger_anchor_lag_seconds"), Lost: count(anchorsLost),
		JournalBytes: count("agentledger_anchor_journal_bytes")}
	r.Witnesses = Witnesses{WaitingLedgers: count("agentledger_witness_ledgers"), Contradictions: count(contradictions),
		WaitSeconds: all.sumOf(witnessWait), OldestQuorumSeconds: all.sumOf("agentledger_witness_oldest_quorum_seconds"),
		Resting: all.namesAboveZero("agentledger_witness_resting", "witness")}
	r.Exports = Exports{LagSeconds: all.sumOf(exportLag),
		LagEvents: count("agentledger_stream_export_lag_events")}
	if all[archiveBundles] != nil {
		r.Archive = &Archive{MovedBundles: count(archiveBundles), Damaged: uint64(totals[archiveFailures]),
			WaitSeconds:    all.sumOf("agentledger_archive_oldest_waiting_seconds"),
			ErasureSeconds: all.sumOf("agentledger_archive_erasure_waiting_seconds")}
	}
	r.Clock = Clock{Held: all.sumOf("agentledger_clock_held") > 0,
		OffsetSeconds: all.sumOf("agentledger_clock_offset_seconds")}
	r.CertificateEndsAt = instantOf(all.sumOf("agentledger_certificate_expires_seconds"))
	r.Events.CountedAt = instantOf(all.sumOf("agentledger_reverify_round_timestamp_seconds"))
}

// instantOf returns the time of a metric in Unix seconds, nil for 0.
func instantOf(seconds float64) *id.Instant {
	if seconds <= 0 {
		return nil
	}
	at := id.InstantOf(time.Unix(int64(seconds), 0))
	return &at
}
