package config

import (
	"math"
	"slices"
	"time"
)

// setting is one member of the section "tuning" of the settings file.
type setting struct {
	key     string // with underscores
	value   value
	meaning string
	change  string // who changes it, and when
}

const (
	day   = 24 * time.Hour
	year  = 365 * day
	inMiB = 1 << 20 // the largest memory limit, in MiB: 1 TiB
	many  = 1 << 20 // the largest limit of anything counted
)

// allSettings returns all tuning settings, in the order of the reference. Their values point into t.
func (t *Tuning) allSettings() []setting {
	return slices.Concat(t.memorySettings(), t.eventSettings(), t.loadSettings(), t.connectionSettings(),
		t.anchorSettings(), t.mailSettings(), t.archiveSettings(), t.witnessSettings())
}

func (t *Tuning) memorySettings() []setting {
	return []setting{
		{"cache_mib", number{&t.CacheMiB, 256, 0, inMiB},
			"memory for data blocks of the embedded store, in MiB, in addition to 128 MiB for recent events and " +
				"at most 43 MiB for event names; 0 is the default",
			"The operator, if memory is scarce or reads of old events keep the disk busy"},
		{"key_tables_mib", number{&t.KeyTablesMiB, 64, 0, inMiB},
			"memory for tables of the most active keys, in MiB, about 60 KiB a key: their signatures are " +
				"verified in less than half of the time; a quarter is reserved for wide tables of the busiest " +
				"keys, 480 KiB each; 0 disables the tables, and the standard library verifies every signature",
			"The operator, if `agentledger_key_table_lookups_total{result=\"miss\"}` grows with the events, or " +
				"to run without the tables"},
		{"heap_floor_mib", number{&t.HeapFloorMiB, 128, 0, inMiB},
			"how much the heap of `serve` grows before a garbage collection if less is alive, in MiB: larger " +
				"values use less processor time; 0 is Go's own rule. `GOGC` in the environment overrides it, and " +
				"`GOMEMLIMIT` takes precedence",
			"The operator of a machine with little memory (0) or plenty (512)"},
		{"leaf_cache_mib", number{&t.LeafCacheMiB, 128, 0, inMiB},
			"memory for leaf hashes, in MiB: an inclusion proof of a cached event (about 30,000 in each MiB) " +
				"reads nothing from the store; 0 disables the cache",
			"The operator of a large log, if `agentledger_leaf_reads_total{from=\"store\"}` grows with the proofs"},
		{"tile_cache_mib", number{&t.TileCacheMiB, 128, 0, inMiB},
			"memory for the upper nodes of trees, in MiB: about 2 KiB for each 256 events with requested proofs; " +
				"0 disables the cache, and each proof computes them",
			"The operator, if memory is scarce or a log has more than 16 million events"},
	}
}

func (t *Tuning) eventSettings() []setting {
	return []setting{
		{"max_event_kib", number{&t.MaxEventKiB, 256, 1, 1 << 14},
			"the largest event, as sent and in canonical form, in KiB",
			"The operator, if agents send larger payloads; never less than the largest event that agents rely on"},
		{"clock_ahead", duration{&t.ClockAhead, 15 * time.Minute, 0, year},
			"how far `emitted_at` may be ahead of the server's clock; 0 is the default",
			"The operator, if the agents' clocks cannot be kept accurate"},
		{"clock_behind", duration{&t.ClockBehind, 0, 0, 100 * year},
			"how far `emitted_at` may be behind the server's clock; 0 accepts any age",
			"The operator, if late events indicate replays and no agent works offline"},
		{"clock_max_gap", duration{&t.ClockMaxGap, 31 * day, 0, 100 * year},
			"how much later than the latest trusted time the service may start ([the " +
				"clock](runbooks/integrity.md#agentledgerclockheld)): a later clock is not trusted until the operator accepts it; 0 " +
				"is no limit",
			"The operator of a service that pauses for longer, or of one whose restarts are watched closely"},
		{"workflow_silence", duration{&t.WorkflowSilence, day, time.Millisecond, year},
			"time without a step after which a [run](guides/runs.md#silence) of an automation tool is abandoned; " +
				"applies to runs that start afterwards",
			"The operator, if a tool waits longer between two steps"},
	}
}

func (t *Tuning) loadSettings() []setting {
	return []setting{
		{"max_in_flight", number{&t.MaxInFlight, 4096, 0, many},
			"concurrent ingest requests; each 64 KiB of a body count as one more. Evaluations have separate " +
				"limits of the same size; 0 is the default",
			"The operator, if `agentledger_ingest_overload_total{bound=\"all\"}` grows and the machine has free " +
				"memory"},
		{"max_in_flight_organization", number{&t.MaxInFlightOrganization, 1024, 0, many},
			"the same for one organization",
			"The operator of a service for few organizations"},
		{"max_polls", number{&t.MaxPolls, 0, 0, many},
			"concurrent long polls; 0 is three quarters of the connections of the main listener (6,144 of " +
				"8,192). A poll beyond the limit is rejected with 503 and Retry-After 5",
			"The operator, if `agentledger_poll_overload_total` grows"},
		{"max_polls_organization", number{&t.MaxPollsOrganization, 0, 0, many},
			"the same for one organization; 0 is a sixth of `max_polls` (1,024). An organization never gets more " +
				"than remain free for the others",
			"The operator of a service for few organizations"},
		{"max_public_reads", number{&t.MaxPublicReads, 512, 0, many},
			"concurrent public reads, and as many of heads and checkpoints; 0 is the default",
			"The operator, if `agentledger_public_overload_total` grows and the machine has free memory"},
		{"max_refusals", number{&t.MaxRefusals, 200, 0, many},
			"rejections a second, for each organization and for all callers without a valid key, that are sent " +
				"at once; others are delayed by a second. 0: all at once",
			"The operator, if a misbehaving client cannot be fixed soon"},
	}
}

func (t *Tuning) connectionSettings() []setting {
	const hour = time.Hour
	return []setting{
		{"max_connections", number{&t.MaxConnections, 8192, 0, many},
			"open connections on each listener; idle ones are closed to accept new ones; less if the process may " +
				"open only [few files](operate/configure.md#open-files). 0: as many as those allow",
			"The operator, if `agentledger_connections_refused_total` grows"},
		{"header_timeout", duration{&t.HeaderTimeout, 5 * time.Second, 0, hour},
			"how long a request's headers may take to arrive, from their first byte; then the response is 408 " +
				"and the connection is closed; 0 is no limit",
			"The operator, for clients on very slow connections"},
		{"body_timeout", duration{&t.BodyTimeout, 30 * time.Second, 0, hour},
			"how long a whole request may take to arrive, from its first byte; then the response is 408 and the " +
				"connection is closed; 0 is no limit. A GET, HEAD or OPTIONS that announces a body is rejected " +
				"with 413 at once",
			"The operator, for clients on very slow connections"},
		{"request_timeout", duration{&t.RequestTimeout, 20 * time.Second, 0, hour},
			"how long a request may take, from the end of its headers ([a store that " +
				"hangs](runbooks/integrity.md#agentledgerappendhangs)); then the response is 503. The arrival of its body " +
				"and the requested time of a long poll are added; 0 is no limit",
			"The operator, together with the time-out of the proxy"},
		{"answer_timeout", duration{&t.AnswerTimeout, time.Minute, 0, hour},
			"how long a response may take, including sending it; 0 is no limit",
			"The operator, for readers on very slow connections"},
		{"idle_timeout", duration{&t.IdleTimeout, 2 * time.Minute, 0, day},
			"how long a connection may wait for its first or next request; 0 is no limit",
			"The operator, together with the proxy, which MUST close connections first"},
		{"drain", duration{&t.Drain, 15 * time.Second, 0, hour},
			"how long open requests may take after a stop signal",
			"The operator, together with the time that the service manager waits before it kills"},
	}
}

func (t *Tuning) anchorSettings() []setting {
	return []setting{
		{"anchor_first", choice{&t.AnchorFirst, []string{"auto", "always", "never"}},
			"when the anchor of an event is written before the event is acknowledged: `auto` (with PostgreSQL " +
				"without a synchronous standby), `always` or `never`; otherwise it is written within a second",
			"The operator, if the embedded store's disk may be rolled back (`always`)"},
		{"accept_asynchronous", consent{&t.AcceptAsynchronous},
			"your consent that PostgreSQL without a synchronous standby may lose acknowledged events without a " +
				"trace: `auto` then means `never`",
			"The operator of a service for tests"},
		{"reverify_pause", duration{&t.ReverifyPause, time.Minute, time.Millisecond, day},
			"how long the background re-verification waits for more events of a ledger, and the pause between " +
				"two scans of all ledgers (at least 49 times as long as a scan takes); it does not wait for a " +
				"ledger with 2,048 new events",
			"The operator, if damage must be found sooner, or if scanning a million ledgers costs too much"},
	}
}

func (t *Tuning) mailSettings() []setting {
	return []setting{
		{"stranger_mails", number{&t.StrangerMails, 100, 1, 100000},
			"how many mails an organization can cause in a day (UTC) to addresses that are not members: [limits " +
				"of mails](operate/configure.md#mail)",
			"The operator, if organizations invite more people in a day"},
	}
}

func (t *Tuning) archiveSettings() []setting {
	return []setting{
		{"archive_after_days", number{&t.ArchiveAfterDays, 30, 0, 36500},
			"with `--archive`: age of the latest of 256 events at which their texts move to the " +
				"[archive](operate/archive.md), in days",
			"The operator, if older events are read often (more) or the disk is scarce (fewer)"},
		{"archive_cache_mib", number{&t.ArchiveCacheMiB, 64, 1, inMiB},
			"memory for texts that were read from the archive, in MiB",
			"The operator, if `agentledger_archive_reads_total` grows with reads of the same old events"},
	}
}

func (t *Tuning) witnessSettings() []setting {
	return []setting{
		{"witness_fail", choice{&t.WitnessFail, []string{"open", "closed"}},
			"what `?cosigned=1` returns if the latest checkpoint with a quorum is too old: `open` returns it " +
				"anyway, `closed` responds with 503. Organizations with their own policy choose for themselves",
			"The operator, if readers are promised cosigned heads"},
		{"witness_max_lag", duration{&t.WitnessMaxLag, time.Minute, 0, day},
			"how long an event may be without a quorum if `witness_fail` is `closed`; 0: not at all",
			"The operator, together with `witness_fail`"},
		{"witness_interval", duration{&t.WitnessInterval, 2 * time.Second, 100 * time.Millisecond, day},
			"time between two rounds of requests for one log",
			"The operator, if the operators of witnesses allow fewer requests a day"},
		{"witness_anchor", choice{&t.WitnessAnchor, []string{"off", "quorum"}},
			"what confirms the head of a log whose anchor is lost: `off` for `adopt` only, `quorum` also for [a " +
				"quorum of witnesses](audit/witnesses.md#witnesses-as-anchor) that cosigned exactly this head",
			"The operator who trusts the quorum as much as the anchors"},
		{"witness_contradiction", choice{&t.WitnessContradiction, []string{"freeze", "alarm"}},
			"what happens if a witness reports twice in a row that it has seen a larger tree or a different " +
				"history: `freeze` stops the log permanently and raises an alarm, `alarm` only raises an alarm",
			"The operator of witnesses that are still being tried"},
		{"log_list_qpd", number{&t.LogListQPD, 0, 0, math.MaxInt32},
			"requests of one log to one witness in a day, as published in the [list of " +
				"logs](audit/witnesses.md#a-list-that-witnesses-follow); 0 is a day divided by `witness_interval`. " +
				"Requires `--log-list-contact`",
			"The operator, if the operator of a witness requests another number"},
		{"directory_interval", duration{&t.DirectoryInterval, 10 * time.Second, time.Millisecond, day},
			"minimum time between two appends to the [directory](spec/directory.md)",
			"The operator, if the directory's log grows too fast"},
		{"trace_ratio", share{&t.TraceRatio, 0.01},
			"share of the requests that are traced to `--trace-endpoint`",
			"The operator, while looking for a slow request"},
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
