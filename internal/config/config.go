// Package config is the operator's settings of the service: their names,
// defaults and checks. Flags win over environment variables AGENTLEDGER_*,
// which win over a JSON file.
//
// What always holds:
//
//   - A setting that was given is obeyed or refused with its name, never ignored.
//   - Secrets come from files or the environment, never from flags, and are not
//     part of these structs' printed form.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"time"
)

// Store says where the data of one service lie.
type Store struct {
	Storage            string   `help:"Address of a PostgreSQL database, postgres://USER@HOST/DATABASE, that holds the ledgers in place of DATA/db. Its password comes from PGPASSWORD or PGPASSFILE." placeholder:"URL" env:"AGENTLEDGER_STORAGE"`
	Data               string   `help:"Data directory: embedded store, keys, anchors." default:"agentledger-data" type:"path" env:"AGENTLEDGER_DATA"`
	Anchors            string   `help:"Folder of the newest shown checkpoints; in production on another volume. Default: DATA/anchors." type:"path" env:"AGENTLEDGER_ANCHORS"`
	MasterKeyFile      string   `help:"File of the key that private keys are sealed under (made at the first start). Default: DATA/master.key. AGENTLEDGER_MASTER_KEY holds the key itself instead." type:"path" env:"AGENTLEDGER_MASTER_KEY_FILE"`
	OlderMasterKeyFile []string `help:"File of a master key that was used before. Repeatable. What is sealed under it is opened, and serve seals it under the newest one." type:"path" sep:"none" env:"AGENTLEDGER_OLDER_MASTER_KEY_FILE"`
	CacheMiB           int64    `name:"cache-mib" help:"Memory for cached data blocks, in MiB." default:"256" env:"AGENTLEDGER_CACHE_MIB"`
}

// DatabaseDir is the engine's directory.
func (s Store) DatabaseDir() string { return filepath.Join(s.Data, "db") }

// AnchorsDir is the folder of the anchors.
func (s Store) AnchorsDir() string { return orElse(s.Anchors, filepath.Join(s.Data, "anchors")) }

// MasterKeyPath is the master key's file.
func (s Store) MasterKeyPath() string {
	return orElse(s.MasterKeyFile, filepath.Join(s.Data, "master.key"))
}

// Identity says under which name the service is known and who provisions it.
type Identity struct {
	PublicURL          string `help:"Address under which the public reaches the service, without a query: https://log.example. It becomes part of every new log's origin, for ever." required:"" placeholder:"URL" env:"AGENTLEDGER_PUBLIC_URL"`
	PlatformSecretFile string `help:"File of the platform secret (made at the first start). Default: DATA/platform.secret. AGENTLEDGER_PLATFORM_SECRET holds the secret itself instead." type:"path" env:"AGENTLEDGER_PLATFORM_SECRET_FILE"`
	Environment        string `help:"Word inside of ingest keys that tells environments apart." default:"live" env:"AGENTLEDGER_ENVIRONMENT"`
}

// Limits are what one request and one organization may take.
type Limits struct {
	MaxEventKiB int               `name:"max-event-kib" help:"Largest event, as sent and in canonical form, in KiB." default:"256" env:"AGENTLEDGER_MAX_EVENT_KIB"`
	ClockAhead  time.Duration     `help:"How far emitted_at may lie ahead of the server's clock." default:"15m" env:"AGENTLEDGER_CLOCK_AHEAD"`
	ClockBehind time.Duration     `help:"How far emitted_at may lie behind; 0 accepts any." default:"0" env:"AGENTLEDGER_CLOCK_BEHIND"`
	Plans       map[string]uint64 `help:"Plans and their events a month, 0 for no cap." default:"free=10000;team=100000;enterprise=0" env:"AGENTLEDGER_PLANS"`
	PlanLimits  map[string]uint64 `help:"Other numbers of plans, by plan and limit, 0 for no bound: free.agents=50;gold.statements_per_minute=600. Limits: agents, ingest_keys, policies, policy_versions, statements_per_minute. What is not named is as shipped, and as enterprise for a plan that is not shipped." env:"AGENTLEDGER_PLAN_LIMITS"`
}

// Clock says which start of the service is by a clock that is trusted.
type Clock struct {
	ClockMaxGap time.Duration `help:"How much later than the newest time that it trusted the service may start: a later clock is held until the operator accepts it. 0: any time." default:"744h" env:"AGENTLEDGER_CLOCK_MAX_GAP"`
	AcceptClock bool          `help:"Trust the machine's clock at this start, whatever time was trusted before. For one start: take it away afterwards." env:"AGENTLEDGER_ACCEPT_CLOCK"`
}

// Workflows says how long a run of an automation tool may be silent.
type Workflows struct {
	WorkflowSilence time.Duration `help:"Time without a step after which a run of an automation tool is abandoned; of runs that begin from then on." default:"24h" env:"AGENTLEDGER_WORKFLOW_SILENCE"`
}

// Overload says how much may be under way at a time. What is beyond is refused at
// once, with the time after which to try again.
type Overload struct {
	MaxInFlight             int `help:"Ingest requests under way at a time; each 64 KiB of a body count as one more." default:"4096" env:"AGENTLEDGER_MAX_IN_FLIGHT"`
	MaxInFlightOrganization int `help:"The same for one organization." default:"1024" env:"AGENTLEDGER_MAX_IN_FLIGHT_ORGANIZATION"`
	MaxPolls                int `help:"Long polls that wait at a time. 0: three quarters of the connections of the main listener." default:"0" env:"AGENTLEDGER_MAX_POLLS"`
	MaxPollsOrganization    int `help:"The same for one organization. 0: a sixth of --max-polls." default:"0" env:"AGENTLEDGER_MAX_POLLS_ORGANIZATION"`
	MaxPublicReads          int `help:"Public reads under way at a time." default:"512" env:"AGENTLEDGER_MAX_PUBLIC_READS"`
	LeafCacheMiB            int `name:"leaf-cache-mib" help:"Memory for leaf hashes, in MiB: inclusion proofs of the events that it has room for, 30,000 in each MiB, read nothing from the store." default:"128" env:"AGENTLEDGER_LEAF_CACHE_MIB"`
	MaxRefusals             int `help:"Refusals a second of one organization, and of all callers without a good key, that are answered at once; others are answered a second later. 0: all at once." default:"200" env:"AGENTLEDGER_MAX_REFUSALS"`
}

// Connections bounds what one connection and all of them may take. 0 is no bound.
type Connections struct {
	MaxConnections      int           `help:"Connections open at a time on each listener; idle ones make room for new ones." default:"8192" env:"AGENTLEDGER_MAX_CONNECTIONS"`
	HeaderTimeout       time.Duration `help:"How long a request's headers may take to arrive." default:"5s" env:"AGENTLEDGER_HEADER_TIMEOUT"`
	BodyTimeout         time.Duration `help:"How long a whole request may take to arrive; then 408." default:"30s" env:"AGENTLEDGER_BODY_TIMEOUT"`
	RequestTimeout      time.Duration `help:"How long a request may take, from the end of its headers; what it waits for in vain is 503. The time for which its body is on its way, and what a long poll asks for, come on top." default:"20s" env:"AGENTLEDGER_REQUEST_TIMEOUT"`
	AnswerTimeout       time.Duration `help:"How long the answer may take, its sending included." default:"60s" env:"AGENTLEDGER_ANSWER_TIMEOUT"`
	IdleTimeout         time.Duration `help:"How long a connection may wait for its next request." default:"2m" env:"AGENTLEDGER_IDLE_TIMEOUT"`
	ClientAddressHeader string        `help:"Header whose last address is the client's, as a proxy in front of the service sets it (X-Forwarded-For). Without it, and wherever it holds no address, the client is the other end of the connection." env:"AGENTLEDGER_CLIENT_ADDRESS_HEADER"`
}

// Callouts says whom the service may call: witnesses and webhooks.
type Callouts struct {
	CalloutAllow []netip.Prefix `help:"Networks that may be called although they are not public, by http too; with commas: 10.1.0.0/16,127.0.0.0/8." placeholder:"PREFIX" env:"AGENTLEDGER_CALLOUT_ALLOW"`
}

// Traces says where OpenTelemetry traces go.
type Traces struct {
	TraceEndpoint string  `help:"Base URL of an OTLP/HTTP receiver, such as http://127.0.0.1:4318. Default: no traces." placeholder:"URL" env:"AGENTLEDGER_TRACE_ENDPOINT"`
	TraceRatio    float64 `help:"Share of the requests that are traced, 0 to 1." default:"0.01" env:"AGENTLEDGER_TRACE_RATIO"`
}

// Logging says what the process writes to standard error.
type Logging struct {
	LogLevel  string `help:"debug, info, warn or error." enum:"debug,info,warn,error" default:"info" env:"AGENTLEDGER_LOG_LEVEL"`
	LogFormat string `help:"text or json." enum:"text,json" default:"text" env:"AGENTLEDGER_LOG_FORMAT"`
}

// Listen says where the service listens.
type Listen struct {
	Listen        string        `help:"Address of the main listener: ingest, public, console. Other machines reach it only if you name another address than a loopback one: :8080 is all of them." default:"127.0.0.1:8080" env:"AGENTLEDGER_LISTEN"`
	IDListen      string        `name:"id-listen" help:"Address of the identity listener." default:"127.0.0.1:8091" env:"AGENTLEDGER_ID_LISTEN"`
	MetricsListen string        `help:"Private address of metrics and profiles; empty for none." default:"127.0.0.1:9464" env:"AGENTLEDGER_METRICS_LISTEN"`
	Drain         time.Duration `help:"How long open requests may take after a stop signal." default:"15s" env:"AGENTLEDGER_DRAIN"`
}

// Anchoring says whether an event is acknowledged before its checkpoint is anchored.
type Anchoring struct {
	AnchorFirst        string `help:"When the anchor of an event is written before its answer: auto (with PostgreSQL without a synchronous standby), always or never. Else it is written within a second." enum:"auto,always,never" default:"auto" env:"AGENTLEDGER_ANCHOR_FIRST"`
	AcceptAsynchronous bool   `help:"Accept that PostgreSQL without a synchronous standby may lose acknowledged events and that nothing shows it: --anchor-first=auto is never then." env:"AGENTLEDGER_ACCEPT_ASYNCHRONOUS"`
}

// First reports whether the anchor is written first. synchronous says that the store
// keeps what it acknowledges, whatever one machine does.
func (a Anchoring) First(synchronous bool) bool {
	if a.AnchorFirst == "auto" {
		return !synchronous && !a.AcceptAsynchronous
	}
	return a.AnchorFirst == "always"
}

// Directory says whether the service keeps a log that lists all its logs.
type Directory struct {
	Directory         string        `help:"Slug of the organization whose log is the directory: it lists the newest tree of every other log, for all to see. Make it first. Default: no directory." placeholder:"SLUG" env:"AGENTLEDGER_DIRECTORY"`
	DirectoryInterval time.Duration `help:"Time between two appends to the directory, at least." default:"10s" env:"AGENTLEDGER_DIRECTORY_INTERVAL"`
}

// Serve is all settings of the running service.
type Serve struct {
	Store
	Identity
	Limits
	Clock
	Overload
	Listen
	Connections
	Logging
	Traces
	Callouts
	Workflows
	Anchoring
	Directory
	LogList
	Witnesses
	ReadOnly      bool          `help:"Show everything and write nothing: all that changes something is answered 503. A service whose volume takes no writes starts so by itself." env:"AGENTLEDGER_READ_ONLY"`
	AnchoredOnly  bool          `kong:"-"` // with ReadOnly: nothing beyond the anchors is shown. The program decides it, not the operator
	ReverifyPause time.Duration `help:"How long the background re-verification leaves few new events of a ledger, and between two looks at all ledgers." default:"1m" env:"AGENTLEDGER_REVERIFY_PAUSE"`
}

// PlatformSecretPath is the platform secret's file.
func (s Serve) PlatformSecretPath() string {
	return orElse(s.PlatformSecretFile, filepath.Join(s.Data, "platform.secret"))
}

// Validate implements kong's check after parsing.
func (s Serve) Validate() error {
	if _, ok := s.Plans["enterprise"]; !ok {
		return fmt.Errorf("--plans: enterprise is missing, the plan of organizations that are made without one")
	}
	if err := s.Limits.validate(); err != nil {
		return err
	}
	if s.MaxEventKiB < 1 || s.MaxEventKiB > 1<<14 {
		return fmt.Errorf("--max-event-kib: from 1 to %d", 1<<14)
	}
	return errors.Join(s.Clock.validate(), s.Overload.validate(), s.Workflows.validate(), s.Traces.validate(), s.Directory.validate(), s.LogList.validate(), s.Witnesses.validate())
}

func (l Limits) validate() error {
	for name := range l.PlanLimits {
		plan, _, ok := strings.Cut(name, ".")
		if _, known := l.Plans[plan]; !ok || !known {
			return fmt.Errorf("--plan-limits: %q does not begin with one of the plans and a dot", name)
		}
	}
	return nil
}

// defaultConnections is what a listener without a bound counts as.
const defaultConnections = 8192

// Polls returns how many long polls may wait, in all and of one organization, at a
// listener of so many connections, 0 for no bound. What was not set leaves connections
// for other work, and polls for other organizations.
func (o Overload) Polls(connections int) (all, organization int) {
	if connections == 0 {
		connections = defaultConnections
	}
	all = cmp.Or(o.MaxPolls, max(1, connections/4*3))
	return all, cmp.Or(o.MaxPollsOrganization, max(1, all/6))
}

func (o Overload) validate() error {
	for flag, n := range map[string]int{
		"max-in-flight": o.MaxInFlight, "max-in-flight-organization": o.MaxInFlightOrganization,
		"max-polls": o.MaxPolls, "max-polls-organization": o.MaxPollsOrganization,
		"max-public-reads": o.MaxPublicReads, "max-refusals": o.MaxRefusals, "leaf-cache-mib": o.LeafCacheMiB,
	} {
		if n < 0 {
			return fmt.Errorf("--%s: not negative", flag)
		}
	}
	return nil
}

func (c Clock) validate() error {
	if c.ClockMaxGap < 0 {
		return errors.New("--clock-max-gap: not negative")
	}
	return nil
}

func (w Workflows) validate() error {
	if w.WorkflowSilence != 0 && w.WorkflowSilence < time.Millisecond { // 0 where nobody serves
		return errors.New("--workflow-silence: at least a millisecond")
	}
	return nil
}

func (t Traces) validate() error {
	if t.TraceRatio < 0 || t.TraceRatio > 1 {
		return errors.New("--trace-ratio: from 0 to 1")
	}
	return nil
}

func (d Directory) validate() error {
	if d.DirectoryInterval < 0 || d.Directory != "" && d.DirectoryInterval == 0 {
		return errors.New("--directory-interval: more than 0")
	}
	return nil
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
