package packtest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify/pack"
)

// Selection describes which part of a log a pack covers.
type Selection struct {
	Request    pack.Request
	Begin, End id.Index
	Size       id.Index // of the checkpoint's tree
	Erased     []id.Index
	Erasing    []id.Index // the statements that erased them
	Acts       bool       // with acts.ndjson
	Columns    []string   // of it
	Dropped    []id.Index // statements that approvals.ndjson does not have
	Also       []id.Index // events that are shown although the request does not show them
}

// Pack makes the parts of a pack, as specified in docs/spec/evidence-pack.md.
func (l *Log) Pack(a Selection) *Parts {
	l.t.Helper()
	l.tiles = newTiles(l.leaves(a.Size))
	p := &Parts{Manifest: l.manifest(a)}
	var records, envelopes, entries strings.Builder
	agents, policies := map[id.Agent]pack.Agent{}, map[string]bool{}
	counts := &p.Manifest.Counts
	for i := a.Begin; i < a.End; i++ {
		e := &l.Events[i]
		entries.Write(e.Entry.Record[:])
		counts.Entries++
		if !a.shows(l, i) {
			continue
		}
		counts.Records++
		records.WriteString(e.Text + "\n")
		switch {
		case slices.Contains(a.Erased, i):
			counts.Erased++
		case a.Request.Envelopes:
			counts.Envelopes++
			envelopes.WriteString(string(e.Envelope.Canonical) + "\n")
		}
		if e.Record.Signer != event.SignerSystem {
			if _, known := agents[e.Record.AgentID]; !known || e.Record.Signer == event.SignerAgent {
				agents[e.Record.AgentID] = describeAgent(&e.Record)
			}
		}
		if e.Record.Policy.PolicyDigest != (id.Hash{}) {
			policies[Policy] = true
		}
	}
	counts.Agents, counts.Policies = uint64(len(agents)), uint64(len(policies))
	p.Files = l.namedFiles(a, agents)
	if len(policies) > 0 {
		p.Files = append(p.Files, File{pack.PolicyFile(PolicyDigest()), Policy})
	}
	approvals, erasures := l.approvals(a, counts), l.erasures(a, counts)
	p.Files = append(p.Files, File{pack.FileEntries, entries.String()}, File{pack.FileRecords, records.String()},
		File{pack.FileEnvelopes, envelopes.String()}, File{pack.FileApprovals, approvals},
		File{pack.FileErasures, erasures})
	if voters := l.voters(a, counts); voters != "" {
		p.Files = append(p.Files, File{pack.FileVoters, voters})
	}
	if a.Acts {
		lines := l.acts(a)
		p.Manifest.Acts = &pack.ManifestActs{Columns: append([]string{}, a.Columns...), Lines: uint64(strings.Count(lines, "\n"))}
		p.Files = append(p.Files, File{pack.FileActs, lines})
	}
	p.Files = append(p.Files, File{pack.FileReport, "<!doctype html><title>Evidence</title>\n"})
	return p
}

// manifest returns the manifest, with the proofs of the range.
func (l *Log) manifest(a Selection) pack.Manifest {
	l.t.Helper()
	leaves := l.leaves(a.Size)
	edge := edgeOf(leaves[:a.Begin])
	whole := edgeOf(leaves)
	m := pack.Manifest{V: pack.Version, Origin: origin, Request: a.Request, Begin: a.Begin, End: a.End,
		TreeSize: a.Size, RootHash: whole.Root(), Edge: edge.Hashes()}
	var err error
	if m.OrganizationID, err = id.ParseOrganization(organization); err != nil {
		l.t.Fatal(err)
	}
	if a.Begin < a.End {
		prev := l.Events[a.Begin].Entry.Prev
		m.Prev = &prev
	}
	if m.Consistency, err = tlog.Consistency(context.Background(), l.tiles, a.End, a.Size); err != nil {
		l.t.Fatal(err)
	}
	return m
}

func edgeOf(leaves []id.Hash) tlog.Edge {
	var e tlog.Edge
	for _, leaf := range leaves {
		e.Append(leaf)
	}
	return e
}

// tiles implements tlog.TileReader for a log of at most 65,536 events: the leaves, and the roots of 256 leaves each.
type tiles [2][]id.Hash

func newTiles(leaves []id.Hash) *tiles {
	all := &tiles{leaves}
	for begin := 0; begin+tlog.TileWidth <= len(leaves); begin += tlog.TileWidth {
		whole := edgeOf(leaves[begin : begin+tlog.TileWidth])
		all[1] = append(all[1], whole.Root())
	}
	return all
}

// Tile returns the hashes of a tile.
func (s *tiles) Tile(_ context.Context, t tlog.Tile) (hashes []byte, err error) {
	first := t.Index * tlog.TileWidth
	for _, h := range s[t.Level][first : first+uint64(t.Width)] {
		hashes = append(hashes, h[:]...)
	}
	return hashes, nil
}

// Leaves returns the hashes of the leaves in a range.
func (s *tiles) Leaves(_ context.Context, begin, end id.Index) (hashes []byte, err error) {
	for _, leaf := range s[0][begin:end] {
		hashes = append(hashes, leaf[:]...)
	}
	return hashes, nil
}

// namedFiles returns the files that precede those of policies.
func (l *Log) namedFiles(a Selection, agents map[id.Agent]pack.Agent) []File {
	l.t.Helper()
	whole := edgeOf(l.leaves(a.Size))
	note, err := l.signer.Sign(tlog.Checkpoint{Origin: origin, Size: a.Size, Root: whole.Root()})
	if err != nil {
		l.t.Fatal(err)
	}
	list := pack.Agents{Agents: []pack.Agent{}}
	for _, agent := range agents {
		list.Agents = append(list.Agents, agent)
	}
	slices.SortFunc(list.Agents, func(a, b pack.Agent) int { return cmp.Compare(a.AgentID, b.AgentID) })
	keys := pack.Keys{Keys: []pack.Key{{VerifierKey: l.Key().String(), Use: "log"}}}
	return []File{{pack.FileCheckpoint, string(note)}, {pack.FileKeys, l.text(keys)},
		{pack.FilePolicy, "log " + l.Key().String() + "\nquorum none\n"}, {pack.FileAgents, l.text(list)}}
}

// read decodes a JSON text.
func (l *Log) read(text []byte, to any) {
	l.t.Helper()
	if err := json.Unmarshal(text, to); err != nil {
		l.t.Fatal(err)
	}
}

// object converts a value to a JSON object.
func (l *Log) object(v any) (object map[string]any) {
	l.t.Helper()
	l.read([]byte(l.text(v)), &object)
	return object
}

func (l *Log) text(v any) string {
	l.t.Helper()
	text, err := jcs.Marshal(v)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(text)
}

// describeAgent describes the agent of a record, which has one key.
func describeAgent(r *event.Record) pack.Agent {
	return pack.Agent{AgentID: r.AgentID, Keys: []pack.AgentKey{{KeyID: r.KeyID, PublicKey: r.PublicKey,
		DID: "did:key:" + r.PublicKey, Custody: r.Custody, Status: "active", RegisteredAt: receivedAt(0)}}}
}

// approvals returns a line for each approval of which the range has statements. The members in l.approval are those of l.described.
func (l *Log) approvals(a Selection, counts *pack.Counts) (lines string) {
	l.t.Helper()
	events := make(map[string][]pack.Statement)
	var names []string
	for i := a.Begin; i < a.End; i++ {
		e := &l.Events[i]
		if e.Envelope.ActionKind != "ledger_approval" || slices.Contains(a.Dropped, i) {
			continue
		}
		var payload map[string]any
		l.read(e.Envelope.Payload, &payload)
		name, ok := payload["approval_id"].(string)
		if !ok { // bent
			continue
		}
		if events[name] == nil {
			names = append(names, name)
		}
		events[name] = append(events[name], pack.Statement{Envelope: string(e.Envelope.Canonical), Record: e.Text})
	}
	for _, name := range names {
		counts.Approvals++
		line := map[string]any{"approval_id": name, "events": events[name]}
		if name == l.described {
			maps.Copy(line, l.approval)
		}
		if _, has := line["payload"]; has && !a.Request.Envelopes {
			line["payload"] = nil
		}
		lines += l.text(line) + "\n"
	}
	return lines
}

// erasures returns a line for each statement.
func (l *Log) erasures(a Selection, counts *pack.Counts) (lines string) {
	l.t.Helper()
	for _, at := range a.Erasing {
		counts.Erasures++
		lines += l.proven(at, a.Size)
	}
	return lines
}
