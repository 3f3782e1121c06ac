// Package pack checks evidence packs: ZIP files that prove the content of an organization's log in
// a range of events. A pack may also be a folder, or a ZIP file that another program made of the
// same files. docs/spec/evidence-pack.md specifies the format to the byte.
//
// Invariants:
//
//   - The result of a check depends only on the bytes of the pack and on the given keys: no
//     network, no clock, no state.
//   - Every byte of every file is checked. No content counts before its digest in the manifest is
//     compared.
//   - A container decides nothing: if its files can be read, only their contents count, and
//     otherwise nothing is claimed about the pack. No file is written, so a name in a container
//     cannot do harm.
//   - A report asserts only recomputed facts. It lists what no check covers.
//   - Memory is bounded by the bounds of the format, not by the size of the pack: about 100 MiB for
//     the most hostile pack and below 10 MiB for a range of 100,000 events, and in addition about
//     250 bytes for each act in the range, if the pack has acts.ndjson.
//   - All functions are safe for concurrent use, and no input makes them panic.
//
// The package is stable in the sense of README, section Stability.
package pack

import (
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/column"
	"github.com/agentledger/agentledger/internal/packacts"
)

// Version is the version of packs that this package reads.
const Version = 1

// Bounds of a pack.
const (
	MaxEvents    = 1_000_000 // in the range
	MaxPolicies  = 1000
	MaxAgents    = 10_000
	MaxLines     = 20_000                // of approvals and of erasures, each
	MaxVoterKeys = 10_000                // lines of events about voter keys
	MaxVotes     = 1000                  // that a report lists
	MaxCoverage  = 1000                  // comparisons that a report lists
	MaxRanges    = 1 << 20               // of all erasures
	MaxColumns   = column.Max            // of acts
	MaxApprovers = packacts.MaxApprovers // that a report lists
	MaxLine      = 4 << 20               // bytes
	MaxDocument  = 1 << 20               // bytes of the manifest, of the keys, and of a policy document

	maxNote       = 128 << 10
	MaxAgentsFile = 16 << 20 // bytes
)

// Names of the files of a pack.
const (
	FileCheckpoint = "checkpoint"
	FileKeys       = "keys.json"
	FilePolicy     = "policy"
	FileAgents     = "agents.json"
	FileEntries    = "entries.bin"
	FileRecords    = "records.ndjson"
	FileEnvelopes  = "envelopes.ndjson"
	FileApprovals  = "approvals.ndjson"
	FileErasures   = "erasures.ndjson"
	FileVoters     = "voters.ndjson" // only in packs with signed votes
	FileActs       = "acts.ndjson"   // absent from packs that were made before it was introduced
	FileReport     = "report.html"
	FileManifest   = "manifest.json"
)

// PolicyFile returns the name of the file of a policy document.
func PolicyFile(digest id.Hash) string { return "policies/" + digest.String() + ".json" }

// Files before and after the policies.
var (
	filesBefore = []string{FileCheckpoint, FileKeys, FilePolicy, FileAgents}
	filesAfter  = []string{FileEntries, FileRecords, FileEnvelopes, FileApprovals, FileErasures, FileVoters, FileActs, FileReport,
		FileManifest}
)

// Kinds of the service's events about packs and approvals.
const (
	ExportKind   = "ledger_evidence_exported"
	approvalKind = "ledger_approval"
	coverageKind = "ledger_coverage_compared"
)

// Manifest is the content of manifest.json, without which no other file counts.
type Manifest struct {
	V              int             `json:"v"` // Version
	Origin         id.Origin       `json:"origin"`
	OrganizationID id.Organization `json:"organization_id"`
	Request        Request         `json:"request"`
	Begin          id.Index        `json:"begin"`
	End            id.Index        `json:"end"` // the range is [Begin, End)
	TreeSize       id.Index        `json:"tree_size"`
	RootHash       id.Hash         `json:"root_hash"`
	Edge           []id.Hash       `json:"edge"` // of the tree of Begin leaves, as accepted by tlog.NewEdge
	Prev           *id.Hash        `json:"prev"` // of the first entry; nil if the range is empty
	Consistency    []id.Hash       `json:"consistency"`
	Counts         Counts          `json:"counts"`
	Acts           *ManifestActs   `json:"acts,omitzero"` // nil if the pack has no FileActs
	Files          []File          `json:"files"`         // in order, without the manifest
}

// ManifestActs describes FileActs.
type ManifestActs struct {
	Columns []string `json:"columns"` // at most MaxColumns names of members of payloads, such as order.id
	Lines   uint64   `json:"lines"`
}

// Request is the request for the pack. A nil member was not set.
type Request struct {
	From      *string   `json:"from"` // a log index in decimal, or a time
	To        *string   `json:"to"`
	AgentID   *id.Agent `json:"agent_id"`
	Tool      *string   `json:"tool"` // a glob
	TraceID   *id.Trace `json:"trace_id"`
	Envelopes bool      `json:"envelopes"`
	// Coverage shows the service's comparisons of records of calls too, whatever the filter. It requires Envelopes.
	Coverage bool `json:"coverage,omitzero"`

	// The subject for whom agents acted (on_behalf_of), and the issuer that names it. Both are absent from the manifest if "",
	// and Issuer requires Subject.
	Subject string `json:"on_behalf_of,omitzero"`
	Issuer  string `json:"issuer,omitzero"`
}

// Filters reports whether events of the range may be withheld.
func (r *Request) Filters() bool {
	return r.AgentID != nil || r.Tool != nil || r.TraceID != nil || r.Subject != ""
}

// Counts are the numbers of parts of a pack.
type Counts struct {
	Entries   uint64 `json:"entries"`
	Records   uint64 `json:"records"`
	Envelopes uint64 `json:"envelopes"`
	Approvals uint64 `json:"approvals"`
	Erasures  uint64 `json:"erasures"`            // statements about erased envelopes
	VoterKeys uint64 `json:"voter_keys,omitzero"` // events about voter keys; absent without signed votes
	Erased    uint64 `json:"erased"`              // shown events whose envelope was erased
	Agents    uint64 `json:"agents"`
	Policies  uint64 `json:"policies"`
}

// File is a file of a pack.
type File struct {
	Name   string  `json:"name"`
	SHA256 id.Hash `json:"sha256"`
	Size   uint64  `json:"size"` // bytes
}

// Agents is the content of agents.json.
type Agents struct {
	Agents []Agent `json:"agents"` // ascending by id
}

// Agent is an agent with its keys, as stated by the operator.
type Agent struct {
	AgentID     id.Agent   `json:"agent_id"`
	DisplayName *string    `json:"display_name"`
	Keys        []AgentKey `json:"keys"` // ascending by id
}

// AgentKey is a key of an agent.
type AgentKey struct {
	KeyID           id.Key        `json:"key_id"`
	PublicKey       string        `json:"public_key"` // Multikey
	DID             string        `json:"did"`        // did:key
	Custody         event.Custody `json:"custody"`
	Status          string        `json:"status"` // active, retired or revoked
	RegisteredAt    id.Instant    `json:"registered_at"`
	EndedAt         *id.Instant   `json:"ended_at"`
	CompromisedFrom *id.Index     `json:"compromised_from"`
}

// Statement is one of the service's own events with its documents.
type Statement struct {
	Envelope string `json:"envelope"`
	Record   string `json:"record"`
}

// Erasure is a line of erasures.ndjson or voters.ndjson: a statement that envelopes were erased, or about a voter key,
// with its proof.
type Erasure struct {
	Entry    string    `json:"entry"`
	Envelope string    `json:"envelope"`
	Proof    []id.Hash `json:"proof"` // as returned by tlog.Inclusion
	Record   string    `json:"record"`
}

// Keys is the content of keys.json.
type Keys struct {
	Keys []Key `json:"keys"` // oldest first
}

// Key is a key of the log.
type Key struct {
	VerifierKey string    `json:"vkey"`
	Use         string    `json:"use"` // log
	FromSize    id.Index  `json:"from_size"`
	ToSize      *id.Index `json:"to_size"` // nil for the current key
}
