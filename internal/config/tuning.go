package config

import (
	"cmp"
	"time"
)

// Tuning is the settings that hardly any operator changes. They have defaults, and
// stand in the member "tuning" of the configuration file only: they have no flags
// and no environment variables.
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

	// Load: how much may be under way at a time. Requests beyond a bound are refused
	// at once, with the time after which to try again.
	MaxInFlight             int
	MaxInFlightOrganization int
	MaxPolls                int
	MaxPollsOrganization    int
	MaxPublicReads          int
	MaxRefusals             int

	// Connections and their time-outs. 0 is no bound.
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

// DefaultTuning returns the settings of a file without the member "tuning".
func DefaultTuning() Tuning {
	var t Tuning
	for _, s := range t.allSettings() {
		s.value.setDefault()
	}
	return t
}

// AnchorsFirst reports whether an anchor is written before its answer. synchronous says
// that the store keeps acknowledged events even if one machine is lost.
func (t Tuning) AnchorsFirst(synchronous bool) bool {
	if t.AnchorFirst == "auto" {
		return !synchronous && !t.AcceptAsynchronous
	}
	return t.AnchorFirst == "always"
}

// defaultConnections stands for the connections of a listener without a bound.
const defaultConnections = 8192

// Polls returns how many long polls may wait, in all and of one organization, at a
// listener with that many connections, 0 for no bound. Defaults leave connections for
// other work, and polls for other organizations.
func (t Tuning) Polls(connections int) (total, organization int) {
	if connections == 0 {
		connections = defaultConnections
	}
	total = cmp.Or(t.MaxPolls, max(1, connections/4*3))
	return total, cmp.Or(t.MaxPollsOrganization, max(1, total/6))
}

// LogListRequests returns how often one log asks a witness in a day, as the list of logs
// says it. Without a setting it is a day divided by the interval between two rounds.
func (t Tuning) LogListRequests() int {
	if t.LogListQPD > 0 {
		return t.LogListQPD
	}
	const day = 24 * time.Hour
	return max(1, int((day+t.WitnessInterval-1)/max(t.WitnessInterval, time.Second)))
}
