// Package pack reads and checks evidence packs: ZIP files that prove the content of an organization's log in
// a range of events. A pack may also be a folder, or a ZIP file that another program made of the same files.
// docs/evidence.md specifies the format to the byte.
//
// Invariants:
//
//   - A check depends on the bytes of the pack and on the keys given: no network, no clock, no state.
//   - Each byte of each file is checked. No content counts before its digest in the manifest is compared.
//   - A container decides nothing: if its files can be read, only their contents count, and otherwise nothing is
//     claimed about the pack. No file is written, so no name in a container can do harm.
//   - A report asserts recomputed facts only. It names what no check covers.
//   - Memory is bounded by the bounds of the format, and not by the size of the pack: about 100 MiB for the
//     most hostile one, and below 10 MiB for a range of 100,000 events.
//   - Everything here is safe for concurrent use, and no input makes it panic.
//
// The package is stable in the sense of README, section Stability.
package pack

import (
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

// Version is the version of packs that this package reads.
const Version = 1

// Bounds of a pack.
const (
	MaxEvents    = 1_000_000 // in the range
	MaxPolicies  = 1000
	MaxAgents    = 10_000
	MaxLines     = 20_000  // of approvals and of erasures, each
	MaxVoterKeys = 10_000  // lines of events about voter keys
	MaxVotes     = 1000    // that a report lists
	MaxRanges    = 1 << 20 // of all erasures
	MaxLine      = 4 << 20 // bytes
	MaxDocument  = 1 << 20 // bytes of the manifest, of the keys, and of a policy document

	maxNote       = 128 << 10
	MaxAgentsFile = 16 << 20 // bytes
)

// The names of the files of a pack.
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
	FileReport     = "report.html"
	FileManifest   = "manifest.json"
)

// PolicyFile returns the name of the file of a policy document.
func PolicyFile(digest id.Hash) string { return "policies/" + digest.String() + ".json" }

// The files before and after those of policies.
var (
	filesBefore = []string{FileCheckpoint, FileKeys, FilePolicy, FileAgents}
	filesAfter  = []string{FileEntries, FileRecords, FileEnvelopes, FileApprovals, FileErasures, FileVoters, FileReport,
		FileManifest}
)

// The kinds of the service's events that speak of packs and of approvals.
const (
	ExportKind   = "ledger_evidence_exported"
	approvalKind = "ledger_approval"
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
	Edge           []id.Hash       `json:"edge"` // of the tree of Begin leaves, as tlog.NewEdge takes it
	Prev           *id.Hash        `json:"prev"` // of the first entry; nil for an empty range
	Consistency    []id.Hash       `json:"consistency"`
	Counts         Counts          `json:"counts"`
	Files          []File          `json:"files"` // in their order, without the manifest
}

// Request is the request of the pack. A nil member was not asked for.
type Request struct {
	From      *string   `json:"from"` // a log index in decimal, or a time
	To        *string   `json:"to"`
	AgentID   *id.Agent `json:"agent_id"`
	Tool      *string   `json:"tool"` // a glob
	TraceID   *id.Trace `json:"trace_id"`
	Envelopes bool      `json:"envelopes"`
}

// Filters reports whether events of the range may be withheld.
func (r *Request) Filters() bool { return r.AgentID != nil || r.Tool != nil || r.TraceID != nil }

// Counts are the numbers of parts of a pack.
type Counts struct {
	Entries   uint64 `json:"entries"`
	Records   uint64 `json:"records"`
	Envelopes uint64 `json:"envelopes"`
	Approvals uint64 `json:"approvals"`
	Erasures  uint64 `json:"erasures"`            // statements about erased envelopes
	VoterKeys uint64 `json:"voter_keys,omitzero"` // events about voter keys; absent without signed votes
	Erased    uint64 `json:"erased"`              // shown events without their envelope, because of those
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

// Agent is an agent with its keys, as the operator says.
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

// Statement is an event of the service's own with its documents.
type Statement struct {
	Envelope string `json:"envelope"`
	Record   string `json:"record"`
}

// Erasure is a line of erasures.ndjson or voters.ndjson: a statement that envelopes were erased, or about a voter key,
// with its proof.
type Erasure struct {
	Entry    string    `json:"entry"`
	Envelope string    `json:"envelope"`
	Proof    []id.Hash `json:"proof"` // as tlog.Inclusion makes it
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
	ToSize      *id.Index `json:"to_size"` // nil while it signs
}
