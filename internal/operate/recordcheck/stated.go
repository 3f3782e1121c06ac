package recordcheck

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/tenant/voterkey"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// fact is a value that an event states. If the value is "", the record must not exist.
type fact struct {
	Value string   `json:"value,omitzero"`
	At    id.Index `json:"at"` // of the event
	// Lenient means that a missing record is not a contradiction.
	Lenient bool `json:"lenient,omitzero"`
	// Accepted means that any record, or none, is valid (sysevent.RecordsAccepted).
	Accepted bool `json:"accepted,omitzero"`
	// Time means that the value is a time in milliseconds, which may differ from the record by at most maxApart.
	Time bool `json:"time,omitzero"`
}

// maxApart is the maximum difference between the time of an event and the time in its record. Both are read from the
// clock while the same append is prepared.
const maxApart = id.Instant(time.Hour / time.Millisecond)

// agrees reports whether the value of a record agrees with the fact.
func (f fact) agrees(value string) bool {
	if f.Accepted || f.Value == value {
		return true
	}
	stated, err := strconv.ParseInt(f.Value, 10, 64)
	recorded, recordedErr := strconv.ParseInt(value, 10, 64)
	return f.Time && err == nil && recordedErr == nil && max(stated, recorded)-min(stated, recorded) <= int64(maxApart)
}

// Statements is what the events of a log state about the records of its organization: agents and their keys, the
// active policy with its digest, members with their roles, the digest of the settings, ingest keys, and voter keys.
// Provisioning states nothing, so what never changed since then is not compared, with two exceptions: the record of
// each event states the public key that signed it, and a voter key never exists without an event. The zero value
// represents an empty log. Memory grows with the number of these objects, not with the number of events.
type Statements struct {
	Size  id.Index        `json:"size"` // number of events read
	Facts map[string]fact `json:"facts"`
}

// stated has the members of all payloads that Note reads.
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

// Note processes the next event of the log. If it returns an error, the event was not processed.
func (s *Statements) Note(e *storage.Event) error {
	if s.Facts == nil {
		s.Facts = map[string]fact{}
	}
	var err error
	switch {
	case !event.ReservedAgent(string(e.Agent)):
		err = s.noteKey(e)
	case e.Envelope != nil: // the audit of the log reports a missing envelope
		err = s.noteEnvelope(e)
	}
	if err != nil {
		return fmt.Errorf("%w: event %d: %w", storage.ErrCorrupt, e.Index, err)
	}
	s.Size = e.Index + 1
	return nil
}

// noteEnvelope processes an event of the service.
func (s *Statements) noteEnvelope(e *storage.Event) error {
	envelope, err := event.Parse(e.Envelope, event.Options{Server: true, MaxBytes: len(e.Envelope) + 1})
	if err != nil {
		return err
	}
	kind := sysevent.Kind(envelope.ActionKind)
	if kind == sysevent.VoterKey {
		return s.noteVoterKey(e.Index, envelope)
	}
	if !isFollowed(kind) {
		return nil
	}
	var p stated
	if err := json.Unmarshal(envelope.Payload, &p); err != nil {
		return err
	}
	s.noteStatement(e.Index, kind, &p)
	return nil
}

// noteVoterKey processes the registration or retirement of a voter key. It does not matter whether verifiers accept
// its signatures.
func (s *Statements) noteVoterKey(at id.Index, envelope *event.Envelope) error {
	var registered signedvote.Registration
	if err := json.Unmarshal(envelope.Payload, &registered); err != nil {
		return err
	}
	key := voterkey.FactName(account.ID(registered.AccountID), registered.CredentialID)
	if registered.Transition == signedvote.Retired {
		for _, member := range []string{"/rp_id", "/web_origin", "/registered_at", "/consent_by"} {
			delete(s.Facts, key+member)
		}
		s.Facts[key] = fact{At: at}
		return nil
	}
	s.Facts[key] = fact{Value: registered.PublicKey.Thumbprint(), At: at}
	s.Facts[key+"/rp_id"] = fact{Value: registered.RPID, At: at}
	s.Facts[key+"/web_origin"] = fact{Value: registered.WebOrigin, At: at}
	s.Facts[key+"/registered_at"] = fact{Value: fmt.Sprint(int64(id.InstantOf(envelope.EmittedAt))), At: at, Time: true}
	consent := fact{Value: voterkey.NoConsent, At: at}
	if registered.Consent != nil {
		by := s.Facts[voterkey.FactName(account.ID(registered.AccountID), registered.Consent.CredentialID)]
		consent.Value, consent.Accepted = by.Value, by.Accepted
	}
	s.Facts[key+"/consent_by"] = consent
	return nil
}

// noteKey records the public key from the record of an event that an agent or a bridge signed.
func (s *Statements) noteKey(e *storage.Event) error {
	r, err := event.ParseRecord(e.Record)
	if err != nil {
		return err
	}
	name := "agent_key/" + string(r.AgentID) + "/" + string(r.KeyID)
	if _, known := s.Facts[name]; !known {
		s.Facts[name] = fact{Value: r.PublicKey, At: e.Index, Lenient: true}
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
			if delete(s.Facts, name); voterkey.IsFactName(name) {
				s.Facts[name] = fact{At: at, Accepted: true}
			}
		}
	}
}

// Contradiction is a record that differs from what an event of the log states.
type Contradiction struct {
	Subject string   // for example "agent_key/AGENT/KEY/status"
	Event   id.Index // that states the subject
	Missing bool     // there is no record
	Extra   bool     // there is a record that no event states
}

func (c Contradiction) String() string {
	switch {
	case c.Extra:
		return c.Subject + ": no event states this record"
	case c.Missing:
		return fmt.Sprintf("%s: the record that event %d states is missing", c.Subject, c.Event)
	}
	return fmt.Sprintf("%s: the record differs from event %d", c.Subject, c.Event)
}

// Comparison compares records with Statements.
type Comparison struct {
	with  *Statements
	log   id.Origin
	seen  map[string]bool
	found []Contradiction
}

// Compare starts a comparison with the records of the organization of a log with that origin. The caller must call
// See with all records of the organization, or at least with those of FactKinds.
func (s *Statements) Compare(origin id.Origin) *Comparison {
	return &Comparison{with: s, log: origin, seen: map[string]bool{}}
}

// FactKinds returns the kinds of records that events state.
func FactKinds() []storage.Kind {
	return slices.Concat(agent.FactKinds, account.FactKinds, org.FactKinds, policystore.FactKinds, voterkey.FactKinds)
}

// See processes a record. It returns an error that wraps storage.ErrCorrupt if the record cannot be decoded.
func (c *Comparison) See(r storage.Record) error {
	for _, facts := range []func(storage.Record) (map[string]string, error){
		agent.Facts, account.Facts, org.Facts, policystore.Facts, c.voterKeyFacts,
	} {
		has, err := facts(r)
		if err != nil {
			return fmt.Errorf("%s %q: %w: %w", r.Kind, r.Key, storage.ErrCorrupt, err)
		}
		for name, value := range has {
			want, is := c.with.Facts[name]
			if !is {
				if voterkey.IsFactName(name) {
					c.found = append(c.found, Contradiction{Subject: name, Extra: true})
				}
				continue
			}
			c.seen[name] = true
			if !want.agrees(value) {
				c.found = append(c.found, Contradiction{Subject: name, Event: want.At})
			}
		}
	}
	return nil
}

func (c *Comparison) voterKeyFacts(r storage.Record) (map[string]string, error) {
	return voterkey.Facts(r, c.log)
}

// End returns the contradictions, sorted by subject.
func (c *Comparison) End() []Contradiction {
	for name, want := range c.with.Facts {
		if !c.seen[name] && want.Value != "" && !want.Lenient {
			c.found = append(c.found, Contradiction{Subject: name, Event: want.At, Missing: true})
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

// Store is the part of a storage engine that CompareStore reads.
type Store interface {
	storage.Ledgers
	storage.RecordStore
}

// follow processes the events up to end.
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

// CompareStore processes the new events of a log and compares what the log states with the records of its
// organization in a store, which may change at the same time.
func (s *Statements) CompareStore(ctx context.Context, store Store, of *log.Identity) ([]Contradiction, error) {
	if err := s.followAll(ctx, store, of.Tenant); err != nil {
		return nil, err
	}
	for range tries {
		c := s.Compare(of.Origin)
		for r, err := range factRecords(ctx, store, of.Tenant) {
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
		// A record may have changed after the events were read. The append that changed it also stated the change.
		if err := s.followAll(ctx, store, of.Tenant); err != nil {
			return nil, err
		}
		found = slices.DeleteFunc(found, func(c Contradiction) bool {
			now, is := s.Facts[c.Subject]
			return is == c.Extra || is && now.At != c.Event
		})
		if len(found) > 0 {
			return found, nil
		}
	}
	return nil, nil // it will be compared again later
}

// followAll processes all events that the log has now.
func (s *Statements) followAll(ctx context.Context, store Store, t id.Tenant) error {
	head, err := store.Head(ctx, t)
	if err != nil {
		return fmt.Errorf("compare records: %w", err)
	}
	return s.follow(ctx, store, t, head.Size)
}
