package recordcheck

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/storage"
)

// fact is the value that an event states. The value "" means that there is no such record.
type fact struct {
	Value string   `json:"value,omitzero"`
	At    id.Index `json:"at"` // of the event
	// Lenient means that a record that is absent is no contradiction.
	Lenient bool `json:"lenient,omitzero"`
}

// Statements is what the events of a log state about the records of its organization: agents and their keys, the active
// policy with its digest, members with their roles, the digest of the settings, and ingest keys. Provisioning states
// nothing, so what was never changed since is not compared, except public keys: the record of each event states the one
// that it was signed with. The zero value is that of an empty log. Memory grows with the number of these things, not with
// the number of events.
type Statements struct {
	Size  id.Index        `json:"size"` // events so far
	Facts map[string]fact `json:"facts"`
}

// stated has the members of the payloads of all statements that Note reads.
type stated struct {
	AgentID         string    `json:"agent_id"`
	KeyID           string    `json:"key_id"`
	PublicKey       string    `json:"public_key"`
	Custody         string    `json:"custody"`
	CompromisedFrom *id.Index `json:"compromised_from"`
	DisplayName     *string   `json:"display_name"`
	Active          *bool     `json:"active"`

	PolicyID      string  `json:"policy_id"`
	PolicyVersion uint64  `json:"policy_version"`
	PolicyDigest  id.Hash `json:"policy_digest"`

	AfterDigest string `json:"after_digest"`

	Name   *string  `json:"name"`
	Scopes []string `json:"scopes"`
	Asks   *bool    `json:"asks"`

	AccountID    string `json:"account_id"`
	MembershipID string `json:"membership_id"`
	Role         string `json:"role"`
	Suspended    bool   `json:"suspended"`

	Subjects []string `json:"subjects"`
}

// Note takes the next event of the log.
func (s *Statements) Note(e *storage.Event) error {
	s.Size = e.Index + 1
	if s.Facts == nil {
		s.Facts = map[string]fact{}
	}
	if !event.ReservedAgent(string(e.Agent)) {
		return s.noteKey(e)
	}
	if e.Envelope == nil {
		return nil // which the audit of the log reports
	}
	envelope, err := event.Parse(e.Envelope, event.Options{Server: true, MaxBytes: len(e.Envelope) + 1})
	if err != nil {
		return fmt.Errorf("event %d: %w", e.Index, err)
	}
	var p stated
	if !isFollowed(sysevent.Kind(envelope.ActionKind)) {
		return nil
	}
	if err := json.Unmarshal(envelope.Payload, &p); err != nil {
		return fmt.Errorf("event %d: %w", e.Index, err)
	}
	s.noteStatement(e.Index, sysevent.Kind(envelope.ActionKind), &p)
	return nil
}

// noteKey takes the public key from the record of an event that an agent or a bridge signed.
func (s *Statements) noteKey(e *storage.Event) error {
	r, err := event.ParseRecord(e.Record)
	if err != nil {
		return fmt.Errorf("event %d: %w", e.Index, err)
	}
	name := "agent_key/" + string(r.AgentID) + "/" + string(r.KeyID)
	if _, known := s.Facts[name]; !known {
		s.Facts[name] = fact{r.PublicKey, e.Index, true}
	}
	return nil
}

func isFollowed(k sysevent.Kind) bool {
	switch k {
	case sysevent.KeyRegistered, sysevent.KeyRetired, sysevent.KeyRevoked, sysevent.AgentCreated, sysevent.AgentChanged,
		sysevent.PolicyActivated, sysevent.PolicyArchived, sysevent.SettingsChanged,
		sysevent.IngestKeyCreated, sysevent.IngestKeyChanged, sysevent.IngestKeyRevoked,
		sysevent.MemberAdded, sysevent.MemberChanged, sysevent.MemberRemoved, sysevent.RecordsAccepted:
		return true
	}
	return false
}

func (s *Statements) noteStatement(at id.Index, kind sysevent.Kind, p *stated) {
	put := func(name, value string) { s.Facts[name] = fact{Value: value, At: at} }
	key, agentName := "agent_key/"+p.AgentID+"/"+p.KeyID, "agent/"+p.AgentID
	ingest, person := "ingest_key/"+p.KeyID, "member/"+p.AccountID
	policy := fmt.Sprintf("%s/%d %v", p.PolicyID, p.PolicyVersion, p.PolicyDigest)
	switch kind {
	case sysevent.KeyRegistered, sysevent.KeyRetired, sysevent.KeyRevoked:
		put(key, p.PublicKey)
		put(key+"/custody", p.Custody)
		put(key+"/status", map[sysevent.Kind]string{
			sysevent.KeyRegistered: string(agent.Active), sysevent.KeyRetired: string(agent.Retired),
			sysevent.KeyRevoked: string(agent.Revoked),
		}[kind])
		if p.CompromisedFrom != nil {
			put(key+"/compromised_from", fmt.Sprint(*p.CompromisedFrom))
		}
	case sysevent.AgentCreated, sysevent.AgentChanged:
		put(agentName, "exists")
		if p.DisplayName != nil {
			put(agentName+"/name", *p.DisplayName)
		}
		if p.Active != nil {
			put(agentName+"/inactive", fmt.Sprint(!*p.Active))
		}
	case sysevent.PolicyActivated:
		put("policy", policy)
		put(policystore.VersionFact(p.PolicyID, p.PolicyVersion), policy)
	case sysevent.PolicyArchived:
		put("policy", "")
		put(policystore.VersionFact(p.PolicyID, p.PolicyVersion), policy)
	case sysevent.SettingsChanged:
		put("settings", p.AfterDigest)
	case sysevent.IngestKeyCreated, sysevent.IngestKeyChanged, sysevent.IngestKeyRevoked:
		put(ingest, "exists")
		if p.Name != nil {
			put(ingest+"/name", *p.Name)
		}
		if p.Scopes != nil {
			put(ingest+"/scopes", strings.Join(p.Scopes, " "))
		}
		if p.Asks != nil {
			put(ingest+"/asks", fmt.Sprint(*p.Asks))
		}
		put(ingest+"/revoked", fmt.Sprint(kind == sysevent.IngestKeyRevoked))
	case sysevent.MemberAdded, sysevent.MemberChanged:
		put(person, p.MembershipID)
		put(person+"/role", p.Role)
		put(person+"/suspended", fmt.Sprint(p.Suspended))
	case sysevent.MemberRemoved:
		for _, name := range []string{person, person + "/role", person + "/suspended"} {
			put(name, "")
		}
	case sysevent.RecordsAccepted:
		for _, name := range p.Subjects {
			delete(s.Facts, name)
		}
	}
}

// Contradiction is a record that is not as an event of the log states.
type Contradiction struct {
	Subject string   // what the event is about: "agent_key/AGENT/KEY/status"
	Event   id.Index // that states it
	Missing bool     // the record is not there
}

func (c Contradiction) String() string {
	problem := "is not as event %d states"
	if c.Missing {
		problem = "is not there, and event %d states it"
	}
	return c.Subject + ": " + fmt.Sprintf(problem, c.Event)
}

// Comparison compares records with Statements.
type Comparison struct {
	with  *Statements
	seen  map[string]bool
	found []Contradiction
}

// Compare begins a comparison, for which all records of the organization have to be seen, or those of FactKinds.
func (s *Statements) Compare() *Comparison { return &Comparison{with: s, seen: map[string]bool{}} }

// FactKinds are the kinds of records that events state.
func FactKinds() []storage.Kind {
	return slices.Concat(agent.FactKinds, account.FactKinds, org.FactKinds, policystore.FactKinds)
}

// See takes a record. It returns an error that wraps storage.ErrCorrupt if the record can't be read.
func (c *Comparison) See(r storage.Record) error {
	for _, facts := range []func(storage.Record) (map[string]string, error){
		agent.Facts, account.Facts, org.Facts, policystore.Facts,
	} {
		has, err := facts(r)
		if err != nil {
			return fmt.Errorf("%s %q: %w: %w", r.Kind, r.Key, storage.ErrCorrupt, err)
		}
		for name, value := range has {
			want, is := c.with.Facts[name]
			if !is {
				continue
			}
			c.seen[name] = true
			if want.Value != value {
				c.found = append(c.found, Contradiction{Subject: name, Event: want.At})
			}
		}
	}
	return nil
}

// End returns the contradictions, by subject.
func (c *Comparison) End() []Contradiction {
	for name, want := range c.with.Facts {
		if !c.seen[name] && want.Value != "" && !want.Lenient {
			c.found = append(c.found, Contradiction{name, want.At, true})
		}
	}
	slices.SortFunc(c.found, func(a, b Contradiction) int { return cmp.Compare(a.Subject, b.Subject) })
	return c.found
}

// factRecords yields the records of an organization that have facts.
func factRecords(ctx context.Context, store storage.RecordStore, t id.Tenant) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		for _, kind := range FactKinds() {
			for r, err := range records.Scan(ctx, store, t, kind, records.Range{}, 0) {
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}

// Store is what CompareStore reads.
type Store interface {
	storage.Ledgers
	storage.RecordStore
}

// follow takes the events up to end.
func (s *Statements) follow(ctx context.Context, store Store, t id.Tenant, end id.Index) error {
	for e, err := range store.Events(ctx, t, s.Size, end, storage.FieldRecord|storage.FieldEnvelope|storage.FieldColumns) {
		if err == nil {
			err = s.Note(&e)
		}
		if err != nil {
			return fmt.Errorf("follow the statements of a log: %w", err)
		}
	}
	return nil
}

// tries bounds the comparisons with records that change while they are read.
const tries = 20

// CompareStore takes the new events of a log and compares what it states with the records of its organization in a store,
// which may be written at the same time.
func (s *Statements) CompareStore(ctx context.Context, store Store, t id.Tenant) ([]Contradiction, error) {
	for range tries {
		head, err := store.Head(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("compare records: %w", err)
		}
		if err := s.follow(ctx, store, t, head.Size); err != nil {
			return nil, err
		}
		c := s.Compare()
		for r, err := range factRecords(ctx, store, t) {
			if err == nil {
				err = c.See(r)
			}
			if err != nil {
				return nil, fmt.Errorf("compare records: %w", err)
			}
		}
		found := c.End()
		if len(found) == 0 {
			return nil, nil
		}
		// Each statement about these records raises the config version in the append that changes them.
		after, err := store.Head(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("compare records: %w", err)
		}
		if after.ConfigVersion == head.ConfigVersion {
			return found, nil
		}
	}
	return nil, nil // it is compared again later
}
