package pack

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/packacts"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
	"github.com/agentledger/agentledger/verify"
)

// Options contain what the caller of Check knows in addition to the pack.
type Options struct {
	// OpenCheckpoint opens the checkpoint with the keys that the caller pinned, as
	// tlog.OpenCheckpoint does for one key. If nil, Check uses the keys in the pack. The report
	// then shows that the pack is intact, but not which log it is from.
	OpenCheckpoint func(note []byte) (tlog.Checkpoint, error)
	// CountAct is called with each act of acts.ndjson, in the order of the log, and reports whether
	// the report counts it. If nil, all are counted. An act is proved only if Check returns no error.
	CountAct func(*Act) bool
	// ToolKeys are keys of tools that the caller pinned. Receipts that they signed confirm acts. All others are only counted.
	ToolKeys []tlog.VerifierKey
}

// Report contains the facts that a pack proves.
type Report struct {
	LogKeySource   verify.KeySource `json:"log_key_source"`
	Origin         id.Origin        `json:"origin"`
	OrganizationID id.Organization  `json:"organization_id"`
	Request        Request          `json:"request"`
	Begin          id.Index         `json:"begin"` // the pack is complete for [Begin, End)
	End            id.Index         `json:"end"`
	TreeSize       id.Index         `json:"tree_size"`
	RootHash       id.Hash          `json:"root_hash"`
	Shown          uint64           `json:"shown"`
	Withheld       uint64           `json:"withheld"`
	Erased         uint64           `json:"erased"` // shown events whose envelope was erased
	Envelopes      uint64           `json:"envelopes"`
	Approvals      uint64           `json:"approvals"`
	// Acts are counted from acts.ndjson, whose lines follow from the rest of the pack. It is nil if there is no such file.
	Acts *Acts `json:"acts,omitzero"`
	// ActionsUnchecked counts approvals without a payload, whose agent and tool cannot be compared.
	ActionsUnchecked uint64 `json:"actions_unchecked"`
	// VotesSigned counts the votes that passkeys of the voters signed, VotesUnsigned all others.
	VotesSigned   uint64 `json:"votes_signed"`
	VotesUnsigned uint64 `json:"votes_unsigned"`
	// Votes are the first MaxVotes votes, in the order of approvals.ndjson.
	Votes []Vote `json:"votes"`
	// Coverage are the first MaxCoverage comparisons that shown events of the service with an envelope state.
	Coverage []Coverage `json:"coverage,omitzero"`
	// SignaturesUnchecked counts shown events whose signature needs an envelope that is not in the pack.
	SignaturesUnchecked uint64  `json:"signatures_unchecked"`
	ManifestSHA256      id.Hash `json:"manifest_sha256"` // named by the log in an event of ExportKind
	Checkpoint          string  `json:"checkpoint"`      // signed note, with its cosignatures
	// NotCovered lists what no check covers, in words.
	NotCovered []string `json:"not_covered"`
}

// Check checks a pack in a ZIP file of size bytes, which any program may have written. Errors name
// the step. They wrap verify.ErrMalformed, verify.ErrMismatch, verify.ErrVersion,
// tlog.ErrMalformed, tlog.ErrProof or tlog.ErrSignature if the pack is not proved, and ErrContainer
// if its files cannot be read; any other error is an error of r. The report is filled as far as the
// check went.
func Check(r io.ReaderAt, size int64, o Options) (Report, error) {
	s := &source{r: r}
	return check(s, o, func() ([]member, error) { return readZIP(s, size) })
}

// CheckFolder checks an unpacked pack. It follows no symbolic link. Errors are those of Check and
// of dir.
func CheckFolder(dir fs.FS, o Options) (Report, error) {
	s := &source{}
	return check(s, o, func() ([]member, error) { return readFolder(dir, s) })
}

func check(s *source, o Options, read func() ([]member, error)) (Report, error) {
	c := &checker{options: o, report: Report{Votes: []Vote{}}}
	members, err := read()
	if err == nil {
		err = c.check(members)
	}
	if s.err != nil {
		err = fmt.Errorf("read pack: %w", s.err)
	}
	return c.report, err
}

// checker is one run of Check.
type checker struct {
	options Options
	report  Report

	files       *archive
	entries     io.ReaderAt // the hashes of the records in the range
	manifest    Manifest
	checkpoint  tlog.Checkpoint
	agents      map[id.Agent]*knownAgent
	policies    map[id.Hash]bool // whether a shown record names the policy
	keys        map[string]edkey.Public
	coverage    coverage
	voters      map[id.Hash]*voter           // by voterName
	voterEvents []*voterEvent                // lines of voters.ndjson
	unlisted    []bool                       // shown statements about approvals that approvals.ndjson does not have, by position in the range
	acts        *packacts.Table              // nil if the pack has no acts.ndjson
	receipts    map[id.Event]*receiptVerdict // by the event ID of the act
	people      map[string]person            // the first MaxApprovers of approvals.ndjson, by account ID
	found       Counts
}

func (c *checker) check(members []member) (err error) {
	if c.files, err = newArchive(members); err != nil {
		return err
	}
	c.keys = make(map[string]edkey.Public)
	for _, step := range []struct {
		name  string
		check func() error
	}{
		{"manifest", c.readManifest},
		{"files", c.checkDigests},
		{"checkpoint", c.openCheckpoint},
		{"request", func() error { return c.manifest.checkRange() }},
		{"completeness", c.checkEntries},
		{"agents", c.readAgents},
		{"policies", c.readPolicies},
		{"erasures", c.readErasures},
		{"voters", c.readVoters},
		{"records", c.checkRecords},
		{"approvals", c.checkApprovals},
		{"voters", c.checkVotersUsed},
		{"receipts", c.checkReceipts},
		{"acts", c.checkActs},
		{"counts", c.checkCounts},
	} {
		if err := step.check(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// readManifest reads the manifest, whose digest the log contains.
func (c *checker) readManifest() error {
	text, err := c.files.readSmall(FileManifest, MaxDocument)
	if err != nil {
		return err
	}
	digest := id.Hash(sha256.Sum256(text))
	if c.manifest, err = ParseManifest(text); err != nil {
		return err
	}
	m := &c.manifest
	c.report.ManifestSHA256, c.report.Origin, c.report.OrganizationID = digest, m.Origin, m.OrganizationID
	c.report.Request, c.report.Begin, c.report.End = m.Request, m.Begin, m.End
	if (m.Acts != nil) != (c.files.byName[FileActs] != nil) {
		return fmt.Errorf("acts and the files: %w", verify.ErrMismatch)
	}
	if m.Acts != nil {
		c.acts, c.people = packacts.New(m.Acts.Columns), make(map[string]person)
	}
	return nil
}

// checkDigests compares each file with the manifest.
func (c *checker) checkDigests() error {
	if len(c.manifest.Files) != len(c.files.files)-1 {
		return fmt.Errorf("files and the manifest: %w", verify.ErrMismatch)
	}
	for i, listed := range c.manifest.Files {
		f := &c.files.files[i]
		digest, err := f.digest() // fails if the container states another size than the content has
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if listed.Name != f.name || listed.Size != uint64(f.size) {
			return fmt.Errorf("name and size of file %d: %w", i+1, verify.ErrMismatch)
		}
		if digest != listed.SHA256 {
			return fmt.Errorf("digest of %s: %w", f.name, verify.ErrMismatch)
		}
	}
	return nil
}

// openCheckpoint checks the checkpoint's signature, origin, size and root.
func (c *checker) openCheckpoint() error {
	note, err := c.files.readSmall(FileCheckpoint, maxNote)
	if err != nil {
		return err
	}
	c.report.Checkpoint = string(note)
	text, err := c.files.readSmall(FileKeys, MaxDocument)
	if err != nil {
		return err
	}
	keys, err := parseKeys(text)
	if err != nil {
		return err
	}
	policy, err := c.files.readSmall(FilePolicy, maxNote)
	if err != nil {
		return err
	}
	if _, err := trust.Parse(policy); err != nil {
		return fmt.Errorf("%s: %w: %v", FilePolicy, verify.ErrMalformed, err)
	}
	open := c.options.OpenCheckpoint
	c.report.LogKeySource = verify.KeyFromArgument
	if open == nil {
		c.report.LogKeySource = verify.KeyFromBundle
		open = func(note []byte) (tlog.Checkpoint, error) { return openWithKeys(note, keys) }
	}
	if c.checkpoint, err = open(note); err != nil {
		return err
	}
	m := &c.manifest
	if c.checkpoint != (tlog.Checkpoint{Origin: m.Origin, Size: m.TreeSize, Root: m.RootHash}) {
		return fmt.Errorf("checkpoint and manifest: %w", verify.ErrMismatch)
	}
	c.report.TreeSize, c.report.RootHash = c.checkpoint.Size, c.checkpoint.Root
	return nil
}

// parseKeys parses keys.json. Unlike in a saved list of keys, each key must be for signing checkpoints.
func parseKeys(text []byte) ([]verify.LogKey, error) {
	list, err := parseExact[Keys](text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", FileKeys, err)
	}
	keys, err := verify.ParseKeys(text)
	if err == nil && len(keys) != len(list.Keys) {
		err = fmt.Errorf("%s: use: %w", FileKeys, verify.ErrMalformed)
	}
	return keys, err
}

// openWithKeys opens a checkpoint with the key among keys that signed it.
func openWithKeys(note []byte, keys []verify.LogKey) (tlog.Checkpoint, error) {
	c, err := tlog.ReadCheckpoint(note)
	if err != nil {
		return c, err
	}
	for _, k := range keys {
		if !k.Signed(c.Size) {
			continue
		}
		if opened, err := tlog.OpenCheckpoint(note, k.Key); !errors.Is(err, tlog.ErrSignature) {
			return opened, err
		}
	}
	return c, fmt.Errorf("keys of the pack: %w", tlog.ErrSignature)
}

// checkCounts compares the counts of the manifest with those that were found.
func (c *checker) checkCounts() error {
	c.found.Entries = uint64(c.manifest.End - c.manifest.Begin)
	c.found.Agents, c.found.Policies = uint64(len(c.agents)), uint64(len(c.policies))
	if c.found != c.manifest.Counts {
		return fmt.Errorf("counts of the manifest: %w", verify.ErrMismatch)
	}
	r := &c.report
	r.Shown, r.Withheld, r.Erased = c.found.Records, c.found.Entries-c.found.Records, c.found.Erased
	r.Envelopes, r.Approvals = c.found.Envelopes, c.found.Approvals
	r.NotCovered = c.notCovered(r)
	return nil
}

// notCovered returns the parts of a pack that no check covers. The verifiers in other languages use the same words in the
// same order.
func (c *checker) notCovered(r *Report) (names []string) {
	if r.Request.Filters() {
		names = append(names, "that no withheld event fits the request (docs/spec/evidence-pack.md)")
	}
	names = append(names, FileRecords+": received_at, custody, policy, and whose key public_key is",
		FileAgents+": display_name, custody, status, registered_at, ended_at, compromised_from")
	if r.Approvals > 0 {
		names = append(names, FileApprovals+": trace_id, policy_id, policy_version, policy_digest, rule_id, quorum, "+
			"created_at, expires_at, email and name of people, members that docs/spec/evidence-pack.md does not list")
	}
	if r.ActionsUnchecked > 0 {
		names = append(names, fmt.Sprintf("%s: agent_id and tool_name of the %d approvals without payload", FileApprovals,
			r.ActionsUnchecked))
	}
	if len(c.voterEvents) > 0 && (r.Request.Filters() || !r.Request.Envelopes || c.voterEvents[0].at < r.Begin) {
		names = append(names, FileVoters+": that no retirement of a voter key before a vote is withheld")
	}
	if r.Request.Filters() || !r.Request.Envelopes {
		names = append(names, FileApprovals+": that no approval, and no event of one, is withheld")
	}
	if c.acts != nil {
		names = append(names, FileActs+": that no approval, vote or result of an act is withheld or lies outside the range")
	} else {
		names = append(names, FileActs+": "+noActs)
	}
	return append(names, FileKeys+", "+FilePolicy+", "+FileReport)
}
