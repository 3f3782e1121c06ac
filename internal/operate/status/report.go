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

// Report is the state of a service, as the platform call returns it.
type Report struct {
	State    string     `json:"state"`
	At       id.Instant `json:"at"`
	Findings []Finding  `json:"findings"` // the most severe first

	Ready         bool   `json:"ready"`
	UnreadyReason string `json:"unready_reason,omitempty"`
	ReadOnly      bool   `json:"read_only"`

	Program   Program   `json:"program"`
	Store     Store     `json:"store"`
	Events    Events    `json:"events"`
	Ledgers   Ledgered  `json:"ledgers"`
	Anchors   Anchors   `json:"anchors"`
	Witnesses Witnesses `json:"witnesses"`
	Webhooks  *Webhooks `json:"webhooks"` // nil if the store does not respond
	Exports   Exports   `json:"stream_exports"`
	Archive   *Archive  `json:"archive"` // nil if there is none
	Clock     Clock     `json:"clock"`
	Nodes     []Node    `json:"nodes"` // empty for a single process
	Volumes   []Volume  `json:"volumes"`

	CertificateEndsAt *id.Instant  `json:"certificate_ends_at"` // nil without TLS
	Backup            *backup.Note `json:"backup"`              // nil if there is none
	BackupUnread      bool         `json:"-"`                   // the note exists but can't be read

	Worst []Ledger `json:"worst_ledgers"` // at most twenty

	increases map[string]float64 // recent increases of counters
	minimum   map[string]float64 // recent minimum of each lag
}

// Program describes the running program.
type Program struct {
	Version       string     `json:"version"`
	Go            string     `json:"go"`
	StartedAt     id.Instant `json:"started_at"`
	UptimeSeconds int64      `json:"uptime_seconds"`
}

// Store is the state of the engine. Counters start with the process.
type Store struct {
	Engine              string  `json:"engine"`     // embedded or postgresql
	Format              int     `json:"format"`     // of the files, or the version of the schema
	DiskBytes           uint64  `json:"disk_bytes"` // 0 for PostgreSQL
	OldestAppendSeconds float64 `json:"oldest_append_seconds"`
	AppendFailures      uint64  `json:"append_failures"` // only failures of the disk
	StaleAnswers        uint64  `json:"stale_answers"`
	LateRequests        uint64  `json:"late_requests"`
}

// Events counts the events of all ledgers, as of the last pass of the re-verification.
type Events struct {
	CountedAt         *id.Instant `json:"counted_at"` // time of that pass, also for faults; nil before the first
	Total             uint64      `json:"total"`
	Queued            uint64      `json:"queued"`
	QueueLimit        uint64      `json:"queue_limit"`
	NotReverified     uint64      `json:"not_reverified"`
	ReverifyLagSecond float64     `json:"reverify_lag_seconds"`
}

// Ledgered counts the ledgers with a known fault, by level.
type Ledgered struct {
	Faulty       map[string]uint64 `json:"faulty"`
	Missing      uint64            `json:"missing"`
	AheadOfClock uint64            `json:"ahead_of_clock"`
	InMemory     uint64            `json:"in_memory"`
	FaultsFound  uint64            `json:"faults_found"` // since the start
	BadProofs    uint64            `json:"bad_proofs"`   // since the start
}

// Anchors is the state of the latest published checkpoints.
type Anchors struct {
	LagSeconds   float64 `json:"lag_seconds"`
	JournalBytes uint64  `json:"journal_bytes"`
	Lost         uint64  `json:"lost"` // since the start
}

// Witnesses is the progress of the cosignatures.
type Witnesses struct {
	WaitingLedgers uint64  `json:"waiting_ledgers"`
	WaitSeconds    float64 `json:"wait_seconds"`   // of the ledger that has waited longest
	Contradictions uint64  `json:"contradictions"` // since the start
	// OldestQuorumSeconds is the age of the last quorum of the log for which it is oldest.
	OldestQuorumSeconds float64  `json:"oldest_quorum_seconds"`
	Resting             []string `json:"resting"` // names of witnesses that get no requests now
}

// Webhooks counts the deliveries that are due.
type Webhooks struct {
	Due  int  `json:"due"`
	More bool `json:"more"` // there may be more
}

// Exports is the lag of the stream exports of all organizations.
type Exports struct {
	LagSeconds float64   `json:"lag_seconds"`
	LagEvents  uint64    `json:"lag_events"`
	Behind     []id.Slug `json:"behind"` // the organizations with the oldest unsent events, at most ten
}

// Archive is the state of the object store with the texts of old events.
type Archive struct {
	MovedBundles   uint64  `json:"moved_bundles"`           // since the start
	Damaged        uint64  `json:"damaged"`                 // reads of damaged or missing objects since the start
	WaitSeconds    float64 `json:"oldest_waiting_seconds"`  // since the oldest unmoved bundle was due
	ErasureSeconds float64 `json:"erasure_waiting_seconds"` // of the oldest erasure that waits for objects
}

// Clock reports whether the machine's clock is trusted.
type Clock struct {
	Held          bool    `json:"held"`
	OffsetSeconds float64 `json:"offset_seconds"`
}

// Node is one of the nodes of the service, as seen by the node that responds.
type Node struct {
	ID             string  `json:"node_id"` // identifies the run of the node, as in X-Agentledger-Node
	Self           bool    `json:"self"`    // this is the responding node
	Host           string  `json:"host"`    // host and port of its internal listener
	Version        string  `json:"version"`
	Leaving        bool    `json:"leaving"`          // it gets no shards, because it is stopping or not yet ready
	BeatAgeSeconds float64 `json:"beat_age_seconds"` // since its latest beat was seen
	Shards         int     `json:"shards"`           // number that it owns, of 1,024
}

// Ledger is a ledger with a fault, or one that waits for witnesses.
type Ledger struct {
	OrganizationID id.Organization `json:"organization_id,omitempty"` // "" if it can't be read, like Slug
	Slug           id.Slug         `json:"slug,omitempty"`
	Origin         id.Origin       `json:"origin,omitempty"`
	Size           id.Index        `json:"size"`
	NewestEventAt  *id.Instant     `json:"newest_event_at"` // time of its latest event; nil if it has none
	Level          string          `json:"level,omitempty"`
	Reason         string          `json:"reason,omitempty"` // of the level; only for the operator
	WaitSeconds    float64         `json:"witness_wait_seconds"`
}

// setFigures sets everything that is read from metrics.
func (r *Report) setFigures(all figures, engine string, increases map[string]float64) {
	r.increases = increases
	count := func(name string) uint64 { return uint64(max(0, all.sum(name))) }
	totals := countAll(all)
	r.Store = Store{Engine: engine, Format: int(count("agentledger_store_format")),
		DiskBytes: count("agentledger_store_disk_bytes"), AppendFailures: uint64(totals[appendFailures]),
		OldestAppendSeconds: all.sum("agentledger_append_oldest_seconds"),
		StaleAnswers:        count(staleAnswers), LateRequests: count(lateRequests)}
	lag := count("agentledger_reverify_lag_events")
	r.Events = Events{Total: count("agentledger_reverified_position_events") + lag, NotReverified: lag,
		Queued: count("agentledger_queue_events"), ReverifyLagSecond: all.sum(reverifyLag),
		QueueLimit: uint64(all.valuesBy("agentledger_queue_limit_events", "bound")["all"])}
	r.Ledgers = Ledgered{Missing: count("agentledger_missing_ledgers"), Faulty: make(map[string]uint64),
		AheadOfClock: count("agentledger_ledgers_ahead_of_clock"), InMemory: count("agentledger_resident_ledgers"),
		FaultsFound: count(faultsFound), BadProofs: count(badProofs)}
	for level, n := range all.valuesBy("agentledger_faulty_ledgers", "level") {
		r.Ledgers.Faulty[level] = uint64(n)
	}
	r.Anchors = Anchors{LagSeconds: all.sum("agentledger_anchor_lag_seconds"), Lost: count(anchorsLost),
		JournalBytes: count("agentledger_anchor_journal_bytes")}
	r.Witnesses = Witnesses{WaitingLedgers: count("agentledger_witness_ledgers"), Contradictions: count(contradictions),
		WaitSeconds: all.sum(witnessWait), OldestQuorumSeconds: all.sum("agentledger_witness_oldest_quorum_seconds"),
		Resting: all.namesAboveZero("agentledger_witness_resting", "witness")}
	r.Exports = Exports{LagSeconds: all.sum(exportLag),
		LagEvents: count("agentledger_stream_export_lag_events")}
	if all[archiveBundles] != nil {
		r.Archive = &Archive{MovedBundles: count(archiveBundles), Damaged: uint64(totals[archiveFailures]),
			WaitSeconds:    all.sum("agentledger_archive_oldest_waiting_seconds"),
			ErasureSeconds: all.sum("agentledger_archive_erasure_waiting_seconds")}
	}
	r.Clock = Clock{Held: all.sum("agentledger_clock_held") > 0,
		OffsetSeconds: all.sum("agentledger_clock_offset_seconds")}
	r.CertificateEndsAt = instantFromSeconds(all.sum("agentledger_certificate_expires_seconds"))
	r.Events.CountedAt = instantFromSeconds(all.sum("agentledger_reverify_round_timestamp_seconds"))
}

// instantFromSeconds converts a metric in Unix seconds to a time, or nil if it is 0.
func instantFromSeconds(seconds float64) *id.Instant {
	if seconds <= 0 {
		return nil
	}
	at := id.InstantOf(time.Unix(int64(seconds), 0))
	return &at
}
