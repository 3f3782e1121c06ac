// Package config is the operator's settings of the service: their names,
// defaults and checks. The settings that an operator chooses are flags. They win
// over environment variables AGENTLEDGER_*, which win over a JSON file. All other
// settings are the member "tuning" of that file.
//
// A new flag is a field in this file. A new tuning setting is a field in tuning.go and a row in tuningtable.go.
//
// Invariants:
//
//   - A setting that is given is obeyed or refused with its name, never ignored.
//   - A number or a duration of the tuning outside of its range is refused.
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
	"unicode"
	"unicode/utf8"

	"github.com/agentledger/agentledger/internal/oidc"
)

// Store says where the data of one service lie.
type Store struct {
	Storage            string   `help:"Address of a PostgreSQL database, postgres://USER@HOST/DATABASE, that holds the ledgers in place of DATA/db. Its password comes from PGPASSWORD or PGPASSFILE." placeholder:"URL" env:"AGENTLEDGER_STORAGE"`
	Data               string   `help:"Data directory: embedded store, keys, anchors." default:"agentledger-data" type:"path" env:"AGENTLEDGER_DATA"`
	Anchors            string   `help:"Folder of the newest shown checkpoints; in production on another volume. Default: DATA/anchors." type:"path" env:"AGENTLEDGER_ANCHORS"`
	MasterKeyFile      string   `help:"File of the key that private keys are sealed under (made at the first start). Default: DATA/master.key. AGENTLEDGER_MASTER_KEY holds the key itself instead." type:"path" env:"AGENTLEDGER_MASTER_KEY_FILE"`
	OlderMasterKeyFile []string `help:"File of a master key that was used before. Repeatable. Keys that are sealed under it are opened, and serve seals them under the newest one." type:"path" sep:"none" env:"AGENTLEDGER_OLDER_MASTER_KEY_FILE"`

	Archive string `help:"Object store for texts of old events." placeholder:"URL" env:"AGENTLEDGER_ARCHIVE"`
}

// DatabaseDir returns the engine's directory.
func (s Store) DatabaseDir() string { return filepath.Join(s.Data, "db") }

// SnapshotsDir returns the folder of snapshots that a serving store makes for other programs of the operator.
func (s Store) SnapshotsDir() string { return filepath.Join(s.Data, "snapshots") }

// AnchorsDir returns the folder of the anchors.
func (s Store) AnchorsDir() string { return cmp.Or(s.Anchors, filepath.Join(s.Data, "anchors")) }

// CheckCopy refuses a path in a folder that the service keeps for itself: it would remove a copy there, or not start.
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
			return fmt.Errorf("%s is a folder of the service itself: choose another place", own)
		}
	}
	return nil
}

// MasterKeyPath returns the master key's file.
func (s Store) MasterKeyPath() string {
	return cmp.Or(s.MasterKeyFile, filepath.Join(s.Data, "master.key"))
}

// Identity says under which name the service is known and where its platform secret is.
type Identity struct {
	PublicURL          string `help:"Address under which the public reaches the service, without a query: https://log.example. It becomes part of every new log's origin, for ever." required:"" placeholder:"URL" env:"AGENTLEDGER_PUBLIC_URL"`
	PlatformSecretFile string `help:"File of the platform secret (made at the first start). Default: DATA/platform.secret. AGENTLEDGER_PLATFORM_SECRET holds the secret itself instead." type:"path" env:"AGENTLEDGER_PLATFORM_SECRET_FILE"`
	Environment        string `help:"Word inside of ingest keys that tells environments apart." default:"live" env:"AGENTLEDGER_ENVIRONMENT"`
}

// Limits are the bounds of organizations by plan.
type Limits struct {
	Plans      map[string]uint64 `help:"Plans and their events a month, 0 for no cap." default:"free=10000;team=100000;enterprise=0" env:"AGENTLEDGER_PLANS"`
	PlanLimits map[string]uint64 `help:"Other numbers of plans, by plan and limit, 0 for no bound: free.agents=50;gold.statements_per_minute=600. Limits: agents, ingest_keys, policies, policy_versions, statements_per_minute. A limit that is not named is as shipped, and as enterprise for a plan that is not shipped." env:"AGENTLEDGER_PLAN_LIMITS"`
}

// Listen is the addresses of the listeners, the header of the proxy before them, and the signup.
type Listen struct {
	Listen              string `help:"Address of the main listener: ingest, public, console. Other machines reach it only if you name another address than a loopback one: :8080 is all of them." default:"127.0.0.1:8080" env:"AGENTLEDGER_LISTEN"`
	IDListen            string `name:"id-listen" help:"Address of the identity listener." default:"127.0.0.1:8091" env:"AGENTLEDGER_ID_LISTEN"`
	MetricsListen       string `help:"Private address of metrics and profiles; empty for none." default:"127.0.0.1:9464" env:"AGENTLEDGER_METRICS_LISTEN"`
	TLSCert             string `help:"Certificate chain in PEM, for TLS." type:"path" env:"AGENTLEDGER_TLS_CERT"`
	TLSKey              string `help:"Its private key in PEM." type:"path" env:"AGENTLEDGER_TLS_KEY"`
	ClientAddressHeader string `help:"Header whose last address is the client's, as a proxy in front of the service sets it (X-Forwarded-For). Without it, and wherever it holds no address, the client is the other end of the connection." env:"AGENTLEDGER_CLIENT_ADDRESS_HEADER"`

	NodeListen string `help:"Address for other nodes." placeholder:"ADDRESS" env:"AGENTLEDGER_NODE_LISTEN"`
	NodeURL    string `name:"node-url" help:"The same, as they reach it." placeholder:"URL" env:"AGENTLEDGER_NODE_URL"`

	Signup string `help:"Who makes organizations." enum:"off,members" default:"off" env:"AGENTLEDGER_SIGNUP"`
}

// Outside says which outsiders the service calls and which lists it shows to them.
type Outside struct {
	CalloutAllow      []netip.Prefix `help:"Networks that may be called although they are not public, by http too; with commas: 10.1.0.0/16,127.0.0.0/8." placeholder:"PREFIX" env:"AGENTLEDGER_CALLOUT_ALLOW"`
	WitnessPolicyFile string         `help:"Witnesses that are asked about every organization's log, and their quorum: a C2SP tlog-policy in which each witness has its URL, without log lines. Default: none; organizations may name their own." type:"path" env:"AGENTLEDGER_WITNESS_POLICY_FILE"`
	Directory         string         `help:"Slug of the organization whose log is the directory: it lists the newest tree of every other log, for all to see. Make it first. Default: no directory." placeholder:"SLUG" env:"AGENTLEDGER_DIRECTORY"`
	LogListContact    string         `help:"How witnesses' operators reach you: an address or a page. With it the service lists the origins and keys of all its logs at /v1/public/witness-network/logs/v0, for all to see. Default: no list." placeholder:"TEXT" env:"AGENTLEDGER_LOG_LIST_CONTACT"`
	TraceEndpoint     string         `help:"Base URL of an OTLP/HTTP receiver, such as http://127.0.0.1:4318. Default: no traces." placeholder:"URL" env:"AGENTLEDGER_TRACE_ENDPOINT"`
}

// Mail is the server that takes the mail of the service.
type Mail struct {
	SMTP string `help:"Mail server, smtps://HOST?from=ADDRESS." placeholder:"URL" env:"AGENTLEDGER_SMTP"`
}

// Logging is the level and the format of the lines on standard error.
type Logging struct {
	LogLevel  string `help:"debug, info, warn or error." enum:"debug,info,warn,error" default:"info" env:"AGENTLEDGER_LOG_LEVEL"`
	LogFormat string `help:"text or json." enum:"text,json" default:"text" env:"AGENTLEDGER_LOG_FORMAT"`
}

// Serve is all settings of the running service.
type Serve struct {
	Store
	Identity
	Limits
	Listen
	Outside
	Mail
	Logging
	ReadOnly     bool `help:"Show everything and write nothing: each change is answered 503. A service whose volume takes no writes starts so by itself." env:"AGENTLEDGER_READ_ONLY"`
	AcceptClock  bool `help:"Trust the machine's clock at this start, whatever time was trusted before. For one start: take it away afterwards." env:"AGENTLEDGER_ACCEPT_CLOCK"`
	AnchoredOnly bool `kong:"-"` // with ReadOnly: nothing beyond the anchors is shown. The program decides it
	Tuning       `kong:"-"`

	OpenID []oidc.Provider `kong:"-"` // providers at which people sign in
	ACME   ACME            `kong:"-"` // the source of the certificates of the main listener
}

// PlatformSecretPath returns the platform secret's file.
func (s Serve) PlatformSecretPath() string {
	return cmp.Or(s.PlatformSecretFile, filepath.Join(s.Data, "platform.secret"))
}

// Validate implements kong's check after parsing.
func (s Serve) Validate() error {
	if err := s.Limits.validatePlans(); err != nil {
		return err
	}
	if s.LogListQPD > 0 && s.LogListContact == "" {
		return errors.New("tuning.log_list_qpd needs --log-list-contact, without which there is no list")
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
		return errors.New("--plans: enterprise is missing, the plan of organizations that are made without one")
	}
	for name := range l.PlanLimits {
		plan, _, ok := strings.Cut(name, ".")
		if _, known := l.Plans[plan]; !ok || !known {
			return fmt.Errorf("--plan-limits: %q does not begin with one of the plans and a dot", name)
		}
	}
	return nil
}

// checkHeaderName refuses a name that no header can have (RFC 9110, token).
func checkHeaderName(name string) error {
	isNoToken := func(r rune) bool {
		return r <= ' ' || r >= unicode.MaxASCII || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	}
	if strings.ContainsFunc(name, isNoToken) {
		return errors.New("--client-address-header: the name of one header, such as X-Forwarded-For")
	}
	return nil
}

const maxContact = 256 // bytes

func checkContact(contact string) error {
	if len(contact) > maxContact || contact != strings.TrimSpace(contact) ||
		strings.ContainsFunc(contact, unicode.IsControl) || !utf8.ValidString(contact) {
		return errors.New("--log-list-contact: one line of at most 256 bytes, without white space around it")
	}
	return nil
}
