package config

import (
	"cmp"
	"time"
)

// Tuning contains the settings that operators rarely change. All have defaults. They are set in the member "tuning"
// of the settings file, and have no flags and no environment variables.
type Tuning struct {
	// Memory.
	CacheMiB     int
	LeafCacheMiB int
	TileCacheMiB int
	KeyTablesMiB int
	HeapFloorMiB int

	// Events and runs.
	MaxEventKiB     int
	ClockAhead      time.Duration
	ClockBehind     time.Duration
	ClockMaxGap     time.Duration
	WorkflowSilence time.Duration

	// Load: limits of concurrent requests. Requests beyond a limit are rejected at once with a Retry-After.
	MaxInFlight             int
	MaxInFlightOrganization int
	MaxPolls                int
	MaxPollsOrganization    int
	MaxPublicReads          int
	MaxRefusals             int

	// Connections and their time-outs. 0 means no limit.
	MaxConnections int
	HeaderTimeout  time.Duration
	BodyTimeout    time.Duration
	RequestTimeout time.Duration
	AnswerTimeout  time.Duration
	IdleTimeout    time.Duration
	Drain          time.Duration

	// Anchors and the re-verification.
	AnchorFirst        string
	AcceptAsynchronous bool
	ReverifyPause      time.Duration

	// Mail.
	StrangerMails int

	// The archive.
	ArchiveAfterDays int
	ArchiveCacheMiB  int

	// Witnesses, directory, traces.
	WitnessFail          string
	WitnessMaxLag        time.Duration
	WitnessInterval      time.Duration
	WitnessAnchor        string
	WitnessContradiction string
	LogListQPD           int
	DirectoryInterval    time.Duration
	TraceRatio           float64
}

// DefaultTuning returns the tuning that applies without a settings file.
func DefaultTuning() Tuning {
	var t Tuning
	for _, s := range t.allSettings() {
		s.value.setDefault()
	}
	return t
}

// AnchorsFirst reports whether the anchor of an event is written before the event is acknowledged. synchronous
// reports whether the store keeps acknowledged events if one machine is lost.
func (t Tuning) AnchorsFirst(synchronous bool) bool {
	if t.AnchorFirst == "auto" {
		return !synchronous && !t.AcceptAsynchronous
	}
	return t.AnchorFirst == "always"
}

// defaultConnections is assumed if the number of connections of a listener is not limited.
const defaultConnections = 8192

// Polls returns how many long polls may wait, in total and of one organization, at a listener with the given number
// of connections, or 0 if it has no limit. The defaults reserve connections for other requests, and polls for other
// organizations.
func (t Tuning) Polls(connections int) (total, organization int) {
	if connections == 0 {
		connections = defaultConnections
	}
	total = cmp.Or(t.MaxPolls, max(1, connections/4*3))
	return total, cmp.Or(t.MaxPollsOrganization, max(1, total/6))
}

// LogListRequests returns how many requests a day a witness gets for one log, as published in the list of logs. By
// default it is a day divided by the interval between two rounds.
func (t Tuning) LogListRequests() int {
	if t.LogListQPD > 0 {
		return t.LogListQPD
	}
	const day = 24 * time.Hour
	return max(1, int((day+t.WitnessInterval-1)/max(t.WitnessInterval, time.Second)))
}
