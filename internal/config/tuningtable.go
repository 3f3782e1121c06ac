package config

import (
	"math"
	"slices"
	"time"
)

// setting is one member of the section "tuning" of the configuration file.
type setting struct {
	key     string // with underscores
	value   value
	meaning string
	change  string // which person changes it, and when
}

const (
	day   = 24 * time.Hour
	year  = 365 * day
	inMiB = 1 << 20 // the largest bound of memory, in MiB: 1 TiB
	many  = 1 << 20 // the largest bound of things at a time
)

// allSettings returns all of the tuning, in the order of the reference. Their values
// point into t.
func (t *Tuning) allSettings() []setting {
	return slices.Concat(t.memorySettings(), t.eventSettings(), t.loadSettings(), t.connectionSettings(),
		t.anchorSettings(), t.mailSettings(), t.archiveSettings(), t.witnessSettings())
}

func (t *Tuning) memorySettings() []setting {
	return []setting{
		{"cache_mib", number{&t.CacheMiB, 256, 0, inMiB},
			"memory for data blocks of the embedded store, in MiB, beside 128 MiB for events that are not in tables " +
				"yet and at most 43 MiB for names of events; 0 is the default",
			"The operator, when memory is scarce, or when reads of old events keep the disk busy"},
		{"key_tables_mib", number{&t.KeyTablesMiB, 64, 0, inMiB},
			"memory for tables of the keys that sign most, in MiB, about 60 KiB a key: their signatures are " +
				"verified in less than half of the time; a quarter is for wide tables, 480 KiB each, of the keys " +
				"that sign very much; 0 is none, and every signature is verified by the standard library",
			"The operator, when `agentledger_key_table_lookups_total{result=\"miss\"}` grows with the events, or " +
				"to do without the tables"},
		{"heap_floor_mib", number{&t.HeapFloorMiB, 128, 0, inMiB},
			"by how much the heap of `serve` grows before it is collected, in MiB, when less is alive: larger takes " +
				"less processor time; 0 is Go's own rule. `GOGC` in the environment takes its place, and " +
				"`GOMEMLIMIT` comes before it",
			"The operator of a machine with little memory (0), or of one with much (512)"},
		{"leaf_cache_mib", number{&t.LeafCacheMiB, 128, 0, inMiB},
			"memory for leaf hashes, in MiB: an inclusion proof of an event that it has room for (about 30,000 in " +
				"each MiB) reads nothing from the store; 0 is none",
			"The operator of a large log, when `agentledger_leaf_reads_total{from=\"store\"}` grows with the proofs"},
		{"tile_cache_mib", number{&t.TileCacheMiB, 128, 0, inMiB},
			"memory for the upper nodes of trees, in MiB: about 2 KiB for 256 events that proofs were asked of; 0 is " +
				"none, and each proof computes them",
			"The operator, when memory is scarce, or of a log with more than 16 million events"},
	}
}

func (t *Tuning) eventSettings() []setting {
	return []setting{
		{"max_event_kib", number{&t.MaxEventKiB, 256, 1, 1 << 14},
			"the largest event, as sent and in canonical form, in KiB",
			"The operator, when agents send larger payloads; never below the largest event that agents rely on"},
		{"clock_ahead", duration{&t.ClockAhead, 15 * time.Minute, 0, year},
			"how far `emitted_at` may lie ahead of the server's clock; 0 is the default",
			"The operator, when agents' clocks can't be kept"},
		{"clock_behind", duration{&t.ClockBehind, 0, 0, 100 * year},
			"how far `emitted_at` may lie behind the server's clock; 0 accepts any age",
			"The operator, when late events are a sign of replays and no agent works offline"},
		{"clock_max_gap", duration{&t.ClockMaxGap, 31 * day, 0, 100 * year},
			"how much later than the newest trusted time the service may start ([the " +
				"clock](operations.md#the-clock)): a later clock is held until the operator accepts it; 0 is any time",
			"The operator of a service that rests for longer, or of one whose restarts are watched closely"},
		{"workflow_silence", duration{&t.WorkflowSilence, day, time.Millisecond, year},
			"time without a step after which a [run](workflows.md#silence) of an automation tool is abandoned; of " +
				"runs that begin from then on",
			"The operator, when a tool waits for longer between two steps"},
	}
}

func (t *Tuning) loadSettings() []setting {
	return []setting{
		{"max_in_flight", number{&t.MaxInFlight, 4096, 0, many},
			"ingest requests under way at a time; each 64 KiB of a body count as one more. Evaluations have the same " +
				"bounds for themselves; 0 is the default",
			"The operator, when `agentledger_ingest_overload_total{bound=\"all\"}` grows and the machine has memory " +
				"left"},
		{"max_in_flight_organization", number{&t.MaxInFlightOrganization, 1024, 0, many},
			"the same for one organization",
			"The operator of a service for few organizations"},
		{"max_polls", number{&t.MaxPolls, 0, 0, many},
			"long polls that wait at a time; 0 is three quarters of the connections of the main listener (6,144 of " +
				"8,192). A poll beyond it is 503 with Retry-After 5",
			"The operator, when `agentledger_poll_overload_total` grows"},
		{"max_polls_organization", number{&t.MaxPollsOrganization, 0, 0, many},
			"the same for one organization; 0 is a sixth of `max_polls` (1,024). An organization never gets more " +
				"than it leaves free for the others",
			"The operator of a service for few organizations"},
		{"max_public_reads", number{&t.MaxPublicReads, 512, 0, many},
			"public reads under way at a time, and as many of heads and checkpoints; 0 is the default",
			"The operator, when `agentledger_public_overload_total` grows and the machine has memory left"},
		{"max_refusals", number{&t.MaxRefusals, 200, 0, many},
			"refusals a second of one organization, and of all callers without a good key, that are answered at " +
				"once; others are answered a second later. 0: all at once",
			"The operator, when a client that is known to be wrong can't be repaired soon"},
	}
}

func (t *Tuning) connectionSettings() []setting {
	const hour = time.Hour
	return []setting{
		{"max_connections", number{&t.MaxConnections, 8192, 0, many},
			"connections open at a time on each listener; idle ones make room for new ones; fewer where the process " +
				"may have [few files open](operations.md#open-files). 0: as many as those allow",
			"The operator, when `agentledger_connections_refused_total` grows"},
		{"header_timeout", duration{&t.HeaderTimeout, 5 * time.Second, 0, hour},
			"how long a request's headers may take to arrive, from their first byte; then 408, and the connection is " +
				"closed; 0 is no bound",
			"The operator, for clients on very slow lines"},
		{"body_timeout", duration{&t.BodyTimeout, 30 * time.Second, 0, hour},
			"how long a whole request may take to arrive, from its first byte; then 408, and the connection is " +
				"closed; 0 is no bound. A GET, HEAD or OPTIONS that announces a body is 413 at once",
			"The operator, for clients on very slow lines"},
		{"request_timeout", duration{&t.RequestTimeout, 20 * time.Second, 0, hour},
			"how long a request may take, from the end of its headers ([a store that " +
				"hangs](operations.md#a-store-that-hangs)); what it waits for in vain is 503. The arrival of its " +
				"body, and the time that a long poll asks for, come on top; 0 is no bound",
			"The operator, together with the time-out of the proxy"},
		{"answer_timeout", duration{&t.AnswerTimeout, time.Minute, 0, hour},
			"how long an answer may take, its sending included; 0 is no bound",
			"The operator, for readers on very slow lines"},
		{"idle_timeout", duration{&t.IdleTimeout, 2 * time.Minute, 0, day},
			"how long a connection may wait for its first or next request; 0 is no bound",
			"The operator, together with the proxy, which MUST give connections up first"},
		{"drain", duration{&t.Drain, 15 * time.Second, 0, hour},
			"how long open requests may take after a stop signal",
			"The operator, together with the service manager's time before it kills"},
	}
}

func (t *Tuning) anchorSettings() []setting {
	return []setting{
		{"anchor_first", choice{&t.AnchorFirst, []string{"auto", "always", "never"}},
			"when the anchor of an event is written before its answer: `auto` (with PostgreSQL without a synchronous " +
				"standby), `always` or `never`; else within a second. [What it " +
				"costs](performance.md#the-anchor-before-the-answer)",
			"The operator, when the embedded store's disk may be rolled back (`always`)"},
		{"accept_asynchronous", consent{&t.AcceptAsynchronous},
			"your word that PostgreSQL without a synchronous standby may lose acknowledged events and that nothing " +
				"shows it: `auto` is `never` then",
			"The operator of a service for tests"},
		{"reverify_pause", duration{&t.ReverifyPause, time.Minute, time.Millisecond, day},
			"how long the background re-verification leaves few new events of a ledger, and between two looks at all " +
				"ledgers (at least 49 times as long as a look takes); 2,048 new events of one ledger don't wait for it",
			"The operator, when damage must be found sooner, or when reading of a million ledgers takes too much"},
	}
}

func (t *Tuning) mailSettings() []setting {
	return []setting{
		{"stranger_mails", number{&t.StrangerMails, 100, 1, 100000},
			"how many mails an organization can cause in a day (UTC) to addresses that are no members: " +
				"[bounds of mails](operations.md#mail)",
			"The operator, when organizations invite more people in a day"},
	}
}

func (t *Tuning) archiveSettings() []setting {
	return []setting{
		{"archive_after_days", number{&t.ArchiveAfterDays, 30, 0, 36500},
			"with `--archive`: how old the newest of 256 events is before their texts move to the " +
				"[archive](storage.md#the-archive), in days",
			"The operator, when older events are read often (more), or when the disk is scarce (fewer)"},
		{"archive_cache_mib", number{&t.ArchiveCacheMiB, 64, 1, inMiB},
			"memory for texts that were read from the archive, in MiB",
			"The operator, when `agentledger_archive_reads_total` grows with reads of the same old events"},
	}
}

func (t *Tuning) witnessSettings() []setting {
	return []setting{
		{"witness_fail", choice{&t.WitnessFail, []string{"open", "closed"}},
			"what `?cosigned=1` answers when the newest checkpoint with a quorum is older than it may be: `open` " +
				"gives it all the same, `closed` refuses with 503. Organizations with a policy of their own choose " +
				"themselves",
			"The operator, when readers are promised cosigned heads"},
		{"witness_max_lag", duration{&t.WitnessMaxLag, time.Minute, 0, day},
			"for how long an event may be without a quorum where failing is closed; 0: not at all",
			"The operator, together with `witness_fail`"},
		{"witness_interval", duration{&t.WitnessInterval, 2 * time.Second, 100 * time.Millisecond, day},
			"time between two rounds of asking about one log",
			"The operator, when witnesses' operators allow fewer requests a day"},
		{"witness_anchor", choice{&t.WitnessAnchor, []string{"off", "quorum"}},
			"what confirms the head of a log whose anchor is lost: `off` for `adopt` alone, `quorum` also for [a " +
				"quorum of witnesses](witnesses.md#witnesses-as-anchor) that hold exactly this head",
			"The operator who trusts the quorum as much as the anchors"},
		{"witness_contradiction", choice{&t.WitnessContradiction, []string{"freeze", "alarm"}},
			"what happens when a witness says twice in a row that it knows a larger tree or another history: " +
				"`freeze` stops the log for good and alarms, `alarm` only tells",
			"The operator of witnesses that are still being tried"},
		{"log_list_qpd", number{&t.LogListQPD, 0, 0, math.MaxInt32},
			"requests of one log to one witness in a day, as the [list of " +
				"logs](witnesses.md#a-list-that-witnesses-follow) says it; 0 is a day divided by `witness_interval`. " +
				"Needs `--log-list-contact`",
			"The operator, when a witness's operator asks for another number"},
		{"directory_interval", duration{&t.DirectoryInterval, 10 * time.Second, time.Millisecond, day},
			"time between two appends to the [directory](directory.md), at least",
			"The operator, when the directory's log grows too fast"},
		{"trace_ratio", share{&t.TraceRatio, 0.01},
			"share of the requests that are traced to `--trace-endpoint`",
			"The operator, while a slow request is looked for"},
	}
}

// Reference is one row of the tuning's reference: texts for people.
type Reference struct {
	Key, Default, Range string
	Meaning             string
	Change              string // which person changes it, and when
}

// TuningReference returns the reference of all tuning settings, in its order.
func TuningReference() []Reference {
	var t Tuning
	var rows []Reference
	for _, s := range t.allSettings() {
		fallback, valid := s.value.describeValue()
		rows = append(rows, Reference{s.key, fallback, valid, s.meaning, s.change})
	}
	return rows
}
