// Package config defines the operator's settings of the service: their names, defaults and checks. Settings that an
// operator chooses are flags. A flag takes precedence over its environment variable AGENTLEDGER_*, which takes
// precedence over the JSON settings file. All other settings are members of "tuning" in that file. Callers get one
// struct and need not know where a value came from.
//
// A new flag is a field in this file. A new tuning setting is a field in tuning.go and a row in tuningtable.go.
//
// Invariants:
//
//   - A setting is either applied or rejected with an error that contains its name. It is never ignored.
//   - A number or a duration of the tuning outside of its range is rejected.
//   - Secrets come from files or the environment, never from flags, and are not part of the printed form of these
//     structs.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agentledger/agentledger/internal/oidc"
)

// Store configures where the data of one service is stored.
type Store struct {
	Storage            string   `help:"Address of a PostgreSQL database, postgres://USER@HOST/DATABASE, for the ledgers, instead of DATA/db. Its password comes from PGPASSWORD or PGPASSFILE." placeholder:"URL" env:"AGENTLEDGER_STORAGE" type:"postgres"`
	Data               string   `help:"Data directory: embedded store, keys, anchors. Without it and without --public-url, serve uses a folder in your user directories." default:"agentledger-data" type:"path" env:"AGENTLEDGER_DATA"`
	Anchors            string   `help:"Directory of the latest published checkpoints; use another volume in production. Default: DATA/anchors." type:"path" env:"AGENTLEDGER_ANCHORS"`
	MasterKeyFile      string   `help:"File of the key that encrypts private keys (generated at the first start). Default: DATA/master.key. Alternatively, AGENTLEDGER_MASTER_KEY contains the key itself." type:"path" env:"AGENTLEDGER_MASTER_KEY_FILE"`
	OlderMasterKeyFile []string `help:"File of an earlier master key. Repeatable. Keys encrypted with it can still be read, and serve re-encrypts them with the current one." type:"path" sep:"none" env:"AGENTLEDGER_OLDER_MASTER_KEY_FILE"`

	Archive string `help:"Object store for the texts of events older than tuning.archive_after_days: s3://BUCKET/PREFIX?endpoint=URL&region=NAME, or file:///FOLDER. A store with archived events does not open without it." placeholder:"URL" env:"AGENTLEDGER_ARCHIVE" type:"archive"`
}

// DatabaseDir returns the directory of the embedded store.
func (s Store) DatabaseDir() string { return filepath.Join(s.Data, "db") }

// SnapshotsDir returns the directory of the snapshots that a running service makes for other commands of the operator.
func (s Store) SnapshotsDir() string { return filepath.Join(s.Data, "snapshots") }

// AnchorsDir returns the directory of the anchors.
func (s Store) AnchorsDir() string { return cmp.Or(s.Anchors, filepath.Join(s.Data, "anchors")) }

// CheckCopy returns an error if a path is in a directory of the service itself, which would delete a copy there or
// fail to start because of it.
func (s Store) CheckCopy(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	for _, own := range []string{s.DatabaseDir(), s.SnapshotsDir(), s.AnchorsDir()} {
		if own, err = filepath.Abs(own); err != nil {
			return err
		}
		if inside, err := filepath.Rel(own, path); err == nil && filepath.IsLocal(inside) {
			return fmt.Errorf("%s is a directory of the service itself: choose another one", own)
		}
	}
	return nil
}

// MasterKeyPath returns the path of the master key's file.
func (s Store) MasterKeyPath() string {
	return cmp.Or(s.MasterKeyFile, filepath.Join(s.Data, "master.key"))
}

// Identity configures the service's public address and its platform secret.
type Identity struct {
	PublicURL          string `help:"Public address of the service, without a query: https://log.example. It becomes a permanent part of every new log's origin. Required, except by a service for this machine only." placeholder:"URL" env:"AGENTLEDGER_PUBLIC_URL" type:"url"`
	PlatformSecretFile string `help:"File of the platform secret (generated at the first start). Default: DATA/platform.secret. Alternatively, AGENTLEDGER_PLATFORM_SECRET contains the secret itself." type:"path" env:"AGENTLEDGER_PLATFORM_SECRET_FILE"`
	Environment        string `help:"Part of each ingest key that identifies the environment." default:"live" env:"AGENTLEDGER_ENVIRONMENT" type:"word" expected:"a word of 1 to 16 of a-z and 0-9, such as live"`
}

// Limits are the limits of organizations, by plan.
type Limits struct {
	Plans      map[string]uint64 `help:"Plans and their events per month; 0 means unlimited. The plan enterprise is required. Move organizations before you remove their plan: requests of an organization on a removed plan are rejected with 503." default:"free=10000;team=100000;enterprise=0" env:"AGENTLEDGER_PLANS"`
	PlanLimits map[string]uint64 `help:"Limits of plans that differ from the defaults, by plan and limit; 0 means unlimited: free.agents=50;gold.statements_per_minute=600. Limits: agents, ingest_keys, policies, policy_versions, statements_per_minute. Limits that are not named keep their defaults; a plan without defaults has those of enterprise." env:"AGENTLEDGER_PLAN_LIMITS"`
}

// Listen configures the listeners, the client address header that a proxy sets, and who may create organizations.
type Listen struct {
	Listen              string `help:"Address of the main listener: ingest, public, console. The default is reachable from this machine only; use :8080 for all interfaces. unix:PATH is a socket of mode 0660." default:"127.0.0.1:8080" env:"AGENTLEDGER_LISTEN" type:"listen"`
	IDListen            string `name:"id-listen" help:"Address of the identity listener." default:"127.0.0.1:8091" env:"AGENTLEDGER_ID_LISTEN" type:"listen"`
	MetricsListen       string `help:"Private address of metrics and profiles; empty to disable." default:"127.0.0.1:9464" env:"AGENTLEDGER_METRICS_LISTEN" type:"listen"`
	TLSCert             string `help:"Certificate chain in PEM: the main listener uses TLS. Changed files are served within a second." type:"path" env:"AGENTLEDGER_TLS_CERT"`
	TLSKey              string `help:"Private key of the certificate in PEM." type:"path" env:"AGENTLEDGER_TLS_KEY"`
	ClientAddressHeader string `help:"Header whose last address is the client's, set by a proxy in front of the service (X-Forwarded-For). If not set, or if the header contains no address, the peer address of the connection is used. Do not set it if clients reach the listeners directly, because each could name any address." env:"AGENTLEDGER_CLIENT_ADDRESS_HEADER"`

	NodeListen string `help:"Address at which other nodes of the same database reach this one. Requires --node-url." placeholder:"ADDRESS" env:"AGENTLEDGER_NODE_LISTEN" type:"listen"`
	NodeURL    string `name:"node-url" help:"URL of that address, as other nodes reach it: https://10.1.0.7:8092." placeholder:"URL" env:"AGENTLEDGER_NODE_URL" type:"url"`

	Signup string `help:"Who may create organizations in addition to the operator: members means everyone with an account." enum:"off,members" default:"off" env:"AGENTLEDGER_SIGNUP"`
}

// Outside configures which external servers the service calls and which lists it publishes.
type Outside struct {
	CalloutAllow      []netip.Prefix `help:"Private networks that the service may call, also over http, separated by commas: 10.1.0.0/16,127.0.0.0/8. Organizations may name addresses in them. By default, only public addresses are called, over https, without redirects and proxies." placeholder:"PREFIX" env:"AGENTLEDGER_CALLOUT_ALLOW" type:"network"`
	WitnessPolicyFile string         `help:"Witnesses for every organization's log, and their quorum: a C2SP tlog-policy with the URL of each witness and without log lines. Default: none; organizations may configure their own." type:"path" env:"AGENTLEDGER_WITNESS_POLICY_FILE"`
	Directory         string         `help:"Slug of the organization whose log is the directory: it publishes the latest tree of every other log. Create the organization first. Default: no directory." placeholder:"SLUG" env:"AGENTLEDGER_DIRECTORY" type:"slug"`
	LogListContact    string         `help:"How operators of witnesses can contact you: an address or a page. If set, the service publishes the origins and keys of all its logs at /v1/public/witness-network/logs/v0. Default: no list." placeholder:"TEXT" env:"AGENTLEDGER_LOG_LIST_CONTACT"`
	TraceEndpoint     string         `help:"Base URL of an OTLP/HTTP receiver, such as http://127.0.0.1:4318. Default: no traces." placeholder:"URL" env:"AGENTLEDGER_TRACE_ENDPOINT" type:"url"`
}

// Mail configures the mail server.
type Mail struct {
	SMTP string `help:"Mail server: smtp://HOST[:587]?from=ADDRESS with STARTTLS, or smtps://HOST[:465]?from=ADDRESS. The parameter credentials names a file of one line USER:PASSWORD, mode 0600. Default: no mail." placeholder:"URL" env:"AGENTLEDGER_SMTP" type:"smtp"`
}

// Logging configures the level and the format of the log on standard error.
type Logging struct {
	LogLevel  string `help:"debug, info, warn or error." enum:"debug,info,warn,error" default:"info" env:"AGENTLEDGER_LOG_LEVEL"`
	LogFormat string `help:"text or json." enum:"text,json" default:"text" env:"AGENTLEDGER_LOG_FORMAT"`
}

// Serve contains all settings of the running service.
type Serve struct {
	Store
	Identity
	Limits
	Listen
	Outside
	Mail
	Logging
	ReadOnly     bool `help:"Serve reads only: every change is rejected with 503. A service whose volume is not writable starts in this mode automatically." env:"AGENTLEDGER_READ_ONLY"`
	AcceptClock  bool `help:"Trust the machine's clock at this start, whatever time was trusted before. Use it for one start and remove it afterwards." env:"AGENTLEDGER_ACCEPT_CLOCK"`
	AnchoredOnly bool `kong:"-"` // with ReadOnly: publishes nothing beyond the anchors. Set by the program, not by the operator
	Tuning       `kong:"-"`

	OpenID []oidc.Provider `kong:"-"` // providers for signing in
	ACME   ACME            `kong:"-"` // source of the main listener's certificates
}

// PlatformSecretPath returns the path of the platform secret's file.
func (s Serve) PlatformSecretPath() string {
	return cmp.Or(s.PlatformSecretFile, filepath.Join(s.Data, "platform.secret"))
}

// Validate checks the settings. kong calls it after parsing.
func (s Serve) Validate() error {
	if err := s.Limits.validatePlans(); err != nil {
		return err
	}
	if s.LogListQPD > 0 && s.LogListContact == "" {
		return errors.New("tuning.log_list_qpd requires --log-list-contact, because there is no list without it")
	}
	if err := s.validateTLS(); err != nil {
		return err
	}
	if err := s.validateNode(); err != nil {
		return err
	}
	if err := checkHeaderName(s.ClientAddressHeader); err != nil {
		return err
	}
	return checkContact(s.LogListContact)
}

func (l Limits) validatePlans() error {
	if _, ok := l.Plans["enterprise"]; !ok {
		return errors.New("--plans: enterprise is missing, which is the plan of organizations that are created without one")
	}
	for name := range l.PlanLimits {
		plan, _, ok := strings.Cut(name, ".")
		if _, known := l.Plans[plan]; !ok || !known {
			return fmt.Errorf("--plan-limits: %q does not begin with the name of a plan and a dot", name)
		}
	}
	return nil
}

// checkHeaderName returns an error if name is not a valid header name (RFC 9110, token). "" is allowed.
func checkHeaderName(name string) error {
	isInvalid := func(r rune) bool {
		return r <= ' ' || r >= unicode.MaxASCII || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	}
	if strings.ContainsFunc(name, isInvalid) {
		return errors.New("--client-address-header must be the name of one header, such as X-Forwarded-For")
	}
	return nil
}

const maxContact = 256 // bytes

func checkContact(contact string) error {
	if len(contact) > maxContact || contact != strings.TrimSpace(contact) ||
		strings.ContainsFunc(contact, unicode.IsControl) || !utf8.ValidString(contact) {
		return errors.New("--log-list-contact must be one line of at most 256 bytes, without surrounding white space")
	}
	return nil
}
