package packtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify/pack"
)

// Wrong is an invalid pack that differs from a sample in one change.
type Wrong struct {
	Name       string
	Bytes      []byte
	Unreadable bool // its container can't be read, so nothing is known about the pack
}

// change changes the parts of a sample. Digests, sizes and line counts are computed again.
type change struct {
	sample int
	name   string
	bend   func(p *Parts)
}

// Changed returns invalid packs whose digests and counts are correct.
func Changed(t testing.TB, l *Log) (all []Wrong) {
	t.Helper()
	for _, c := range slices.Concat(manifestChanges(), entryChanges(), recordChanges(), documentChanges(),
		statementChanges(), requestChanges(), actionChanges(), ruleChanges()) {
		s := Samples(t, l)[c.sample]
		c.bend(s.Parts)
		all = append(all, Wrong{s.Name + ": " + c.name, s.Parts.Bytes(t), c.name == "a file doubled"})
	}
	return all
}

// Lines returns the lines of a text, including their line ends.
func Lines(text string) []string { return strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n") }

// editLines changes the lines of a file. edit gets them without line ends.
func editLines(name string, edit func([]string) []string) func(*Parts) {
	return func(p *Parts) {
		text := p.File(name)
		lines := edit(strings.Split(strings.TrimSuffix(*text, "\n"), "\n"))
		*text = strings.Join(lines, "\n") + "\n"
		if len(lines) == 0 {
			*text = ""
		}
		p.CountLines()
	}
}

// CountLines computes the line counts again.
func (p *Parts) CountLines() {
	c := &p.Manifest.Counts
	for name, count := range map[string]*uint64{pack.FileRecords: &c.Records, pack.FileEnvelopes: &c.Envelopes,
		pack.FileApprovals: &c.Approvals, pack.FileErasures: &c.Erasures} {
		*count = uint64(strings.Count(*p.File(name), "\n"))
	}
	for _, f := range p.Files {
		if f.Name == pack.FileVoters {
			c.VoterKeys = uint64(strings.Count(f.Content, "\n"))
		}
	}
}

func replace(name, old, text string) func(*Parts) {
	return func(p *Parts) {
		file := p.File(name)
		if !strings.Contains(*file, old) {
			panic("nothing to replace in " + name)
		}
		*file = strings.Replace(*file, old, text, 1)
	}
}

func removed(i int) func([]string) []string {
	return func(l []string) []string { return append(l[:i:i], l[i+1:]...) }
}

func swapped(i int) func([]string) []string {
	return func(l []string) []string { l[i], l[i+1] = l[i+1], l[i]; return l }
}

func doubled(i int) func([]string) []string {
	return func(l []string) []string { return append(l[:i+1:i+1], l[i:]...) }
}

func manifestChanges() []change {
	text := func(old, other string) func(*Parts) {
		return func(p *Parts) {
			m, err := p.sealed()
			if err != nil || !strings.Contains(m, old) {
				panic("nothing to replace in the manifest")
			}
			p.Text = strings.Replace(m, old, other, 1)
		}
	}
	count := func(edit func(*pack.Counts)) func(*Parts) { return func(p *Parts) { edit(&p.Manifest.Counts) } }
	return []change{
		{0, "another version", func(p *Parts) { p.Manifest.V = 2 }},
		{0, "a member more", text(`"v":1`, `"v":1,"w":1`)},
		{0, "a member missing", text(`,"v":1`, ``)},
		{0, "white space", text(`"v":1`, `"v": 1`)},
		{0, "a line end behind", text(`"v":1}`, "\"v\":1}\n")},
		{0, "null in place of a list", text(`"edge":[]`, `"edge":null`)},
		{0, "a digest in upper case", func(p *Parts) {
			m, err := p.sealed()
			if err != nil {
				panic(err)
			}
			at := strings.Index(m, `"root_hash":"`) + len(`"root_hash":"`)
			p.Text = m[:at] + strings.ToUpper(m[at:at+64]) + m[at+64:]
		}},
		{0, "another origin", func(p *Parts) { p.Manifest.Origin += "/2" }},
		{0, "another organization", func(p *Parts) { p.Manifest.OrganizationID[0]++ }},
		{0, "another root", func(p *Parts) { p.Manifest.RootHash[0]++ }},
		{0, "another tree size", func(p *Parts) { p.Manifest.TreeSize++ }},
		{0, "more entries counted", count(func(c *pack.Counts) { c.Entries++ })},
		{0, "more records counted", count(func(c *pack.Counts) { c.Records++ })},
		{0, "fewer envelopes counted", count(func(c *pack.Counts) { c.Envelopes-- })},
		{0, "fewer erased events counted", count(func(c *pack.Counts) { c.Erased-- })},
		{0, "fewer erasures counted", count(func(c *pack.Counts) { c.Erasures-- })},
		{0, "fewer approvals counted", count(func(c *pack.Counts) { c.Approvals-- })},
		{0, "more agents counted", count(func(c *pack.Counts) { c.Agents++ })},
		{0, "more policies counted", count(func(c *pack.Counts) { c.Policies++ })},
		{5, "prev in an empty range", func(p *Parts) { p.Manifest.Prev = &id.Hash{} }},
		{5, "an end before the begin", func(p *Parts) { p.Manifest.End-- }},
		{6, "a root of the empty log other than SHA-256 of nothing", func(p *Parts) {
			p.Manifest.RootHash[0]++
		}},
	}
}

// sealed returns the text of the manifest that Bytes would write.
func (p *Parts) sealed() (string, error) {
	p.addDigests()
	text, err := p.Manifest.Text()
	return string(text), err
}

func entryChanges() []change {
	return []change{
		{0, "a record hash changed", func(p *Parts) { flip(p.File(pack.FileEntries), 40) }},
		{0, "an entry missing", func(p *Parts) {
			cut(p.File(pack.FileEntries), 32)
			p.Manifest.Counts.Entries--
		}},
		{0, "an entry more", func(p *Parts) { *p.File(pack.FileEntries) += strings.Repeat("a", 32) }},
		{0, "entries cut inside of one", func(p *Parts) { cut(p.File(pack.FileEntries), 1) }},
		{0, "prev of the first entry other than genesis", func(p *Parts) { p.Manifest.Prev[0]++ }},
		{2, "prev changed", func(p *Parts) { p.Manifest.Prev[0]++ }},
		{2, "the edge changed", func(p *Parts) { p.Manifest.Edge[0][0]++ }},
		{2, "a hash of the edge missing", func(p *Parts) { p.Manifest.Edge = p.Manifest.Edge[1:] }},
		{2, "a hash of the edge more", func(p *Parts) {
			p.Manifest.Edge = append(p.Manifest.Edge, id.Hash{})
		}},
		{2, "the consistency proof changed", func(p *Parts) { p.Manifest.Consistency[1][0]++ }},
		{2, "a hash of the consistency proof missing", func(p *Parts) {
			p.Manifest.Consistency = p.Manifest.Consistency[1:]
		}},
		{2, "a hash of the consistency proof more", func(p *Parts) {
			p.Manifest.Consistency = append(p.Manifest.Consistency, id.Hash{})
		}},
		{0, "a consistency proof that is not needed", func(p *Parts) {
			p.Manifest.Consistency = []id.Hash{{}}
		}},
		{6, "a consistency proof of the empty log", func(p *Parts) {
			p.Manifest.Consistency = []id.Hash{tlog.EmptyRoot()}
		}},
		{5, "an edge that is not the tree's", func(p *Parts) { p.Manifest.Edge[0][0]++ }},
	}
}

func recordChanges() []change {
	return []change{
		{0, "a record missing", editLines(pack.FileRecords, removed(7))},
		{1, "a record missing", editLines(pack.FileRecords, removed(12))},
		{0, "a record doubled", editLines(pack.FileRecords, doubled(2))},
		{0, "records in another order", editLines(pack.FileRecords, swapped(4))},
		{1, "records in another order", editLines(pack.FileRecords, swapped(11))},
		{0, "received_at of a record changed",
			replace(pack.FileRecords, `"received_at":"2026`, `"received_at":"2025`)},
		{1, "the decision of a record changed",
			replace(pack.FileRecords, `"effective":"allow"`, `"effective":"deny"`)},
		{1, "white space in a record", replace(pack.FileRecords, `"v":1`, `"v": 1`)},
		{1, "an empty line", replace(pack.FileRecords, "}\n", "}\n\n")},
		{1, "a line end missing", func(p *Parts) { cut(p.File(pack.FileRecords), 1) }},
		{1, "a carriage return", replace(pack.FileRecords, "}\n", "}\r\n")},
		{0, "an envelope missing", editLines(pack.FileEnvelopes, removed(0))},
		{0, "the last envelope missing", editLines(pack.FileEnvelopes, removed(10))},
		{0, "an envelope doubled", editLines(pack.FileEnvelopes, doubled(0))},
		{0, "envelopes in another order", editLines(pack.FileEnvelopes, swapped(3))},
		{0, "an envelope changed", replace(pack.FileEnvelopes, `"payload":{"n":1}`, `"payload":{"n":2}`)},
		{0, "the signature of an envelope changed", func(p *Parts) {
			file := p.File(pack.FileEnvelopes)
			at := strings.Index(*file, `"sig_value_b64":"`) + len(`"sig_value_b64":"`)
			*file = (*file)[:at] + "AAAA" + (*file)[at+4:]
		}},
		{1, "an envelope that was not asked for", func(p *Parts) {
			*p.File(pack.FileEnvelopes) = "{}\n"
			p.CountLines()
		}},
	}
}

func documentChanges() []change {
	return []change{
		{0, "a policy changed", replace(policyFile(), `"default":"allow"`, `"default":"deny"`)},
		{0, "a policy missing", func(p *Parts) { p.remove(policyFile()); p.Manifest.Counts.Policies-- }},
		{5, "a policy that no event names", func(p *Parts) {
			p.Files = append(p.Files[:4:4], append([]File{{policyFile(), Policy}}, p.Files[4:]...)...)
			p.Manifest.Counts.Policies++
		}},
		{0, "an agent missing", func(p *Parts) {
			*p.File(pack.FileAgents) = `{"agents":[]}`
			p.Manifest.Counts.Agents = 0
		}},
		{3, "an agent without a shown event", func(p *Parts) {
			replace(pack.FileAgents, `{"agents":[`, `{"agents":[{"agent_id":"agt_0","display_name":null,"keys":[]},`)(p)
			p.Manifest.Counts.Agents++
		}},
		{0, "agents in another order", func(p *Parts) {
			file := p.File(pack.FileAgents)
			inner := strings.TrimSuffix(strings.TrimPrefix(*file, `{"agents":[`), `]}`)
			list := strings.SplitN(inner, `,{"agent_id"`, 2)
			*file = `{"agents":[{"agent_id"` + list[1] + "," + list[0] + `]}`
		}},
		{0, "a key's did of another key", replace(pack.FileAgents, `did:key:z6Mk`, `did:key:z6Ml`)},
		{0, "an unknown status of a key", replace(pack.FileAgents, `"status":"active"`, `"status":"lost"`)},
		{0, "an unknown member in agents.json", replace(pack.FileAgents, `{"agents"`, `{"a":1,"agents"`)},
		{0, "an unknown member in keys.json", replace(pack.FileKeys, `{"keys"`, `{"a":1,"keys"`)},
		{0, "another use of a key", replace(pack.FileKeys, `"use":"log"`, `"use":"grant"`)},
		{0, "a checkpoint of another size", replace(pack.FileCheckpoint, "\n13\n", "\n12\n")},
		{0, "a checkpoint without signature", func(p *Parts) {
			file := p.File(pack.FileCheckpoint)
			*file = (*file)[:strings.Index(*file, "\n\n")+2]
		}},
		{0, "a file missing", func(p *Parts) { p.remove(pack.FileReport) }},
		{0, "a file more", func(p *Parts) { p.Files = append(p.Files, File{"notes", "a"}) }},
		{0, "files in another order", func(p *Parts) { p.Files[0], p.Files[1] = p.Files[1], p.Files[0] }},
		{0, "a file doubled", func(p *Parts) { p.Files = append(p.Files, *p.named(pack.FileReport)) }},
		{0, "a file of another name", func(p *Parts) { p.named(pack.FileReport).Name = "Report.html" }},
	}
}

func statementChanges() []change {
	return []change{
		{0, "an erasure missing", editLines(pack.FileErasures, removed(0))},
		{0, "an erasure doubled", editLines(pack.FileErasures, doubled(1))},
		{0, "erasures in another order", editLines(pack.FileErasures, swapped(0))},
		{0, "the proof of an erasure changed", func(p *Parts) {
			file := p.File(pack.FileErasures)
			at := strings.Index(*file, `"proof":["`) + len(`"proof":["`)
			flip(file, at)
		}},
		{0, "an erasure of other events", replace(pack.FileErasures, `[[3,4]]`, `[[4,5]]`)},
		{2, "an erasure of no shown event", func(p *Parts) {
			more := *p.File(pack.FileErasures)
			editLines(pack.FileErasures, func(l []string) []string { return append([]string{p.spare}, l...) })(p)
			if more == *p.File(pack.FileErasures) {
				panic("no erasure more")
			}
		}},
		{0, "an unknown member of an erasure", replace(pack.FileErasures, `,"record":`, `,"q":1,"record":`)},
		{0, "another approval's id",
			replace(pack.FileApprovals, `"approval_id":"apr_1"`, `"approval_id":"apr_2"`)},
		{0, "an approval doubled", editLines(pack.FileApprovals, doubled(0))},
		{0, "an approval without events", func(p *Parts) {
			file := p.File(pack.FileApprovals)
			*file = `{"approval_id":"apr_1","events":[]}` + "\n"
		}},
		{0, "a statement of an approval changed", replace(pack.FileApprovals,
			`\"transition\":\"approved\"`, `\"transition\":\"denied\"`)},
		{0, "a member more in an approval's event",
			replace(pack.FileApprovals, `"events":[{`, `"events":[{"a":1,`)},
		{0, "an approval with white space", replace(pack.FileApprovals, `"events":[`, `"events": [`)},
	}
}

func requestChanges() []change {
	agent, trace := id.Agent("agt_1"), id.Trace("none")
	text := func(s string) *string { return &s }
	ask := func(edit func(*pack.Request)) func(*Parts) { return func(p *Parts) { edit(&p.Manifest.Request) } }
	return []change{
		{2, "another from", ask(func(r *pack.Request) { r.From = text("4") })},
		{2, "another to", ask(func(r *pack.Request) { r.To = text("8") })},
		{2, "no from", ask(func(r *pack.Request) { r.From = nil })},
		{2, "no to", ask(func(r *pack.Request) { r.To = nil })},
		{2, "from with a leading zero", ask(func(r *pack.Request) { r.From = text("05") })},
		{2, "from is no bound", ask(func(r *pack.Request) { r.From = text("soon") })},
		{4, "a time without milliseconds",
			ask(func(r *pack.Request) { r.From = text("2026-11-18T14:26:45Z") })},
		{2, "another agent", ask(func(r *pack.Request) { r.AgentID = &agent })},
		{2, "no filter, with events that are not shown", ask(func(r *pack.Request) { r.AgentID = nil })},
		{3, "another tool", ask(func(r *pack.Request) { r.Tool = text("acme.mail.*") })},
		{3, "a malformed tool", ask(func(r *pack.Request) { r.Tool = text("**.acme") })},
		{3, "another trace", ask(func(r *pack.Request) { r.TraceID = &trace })},
		{0, "envelopes that were not asked for", ask(func(r *pack.Request) { r.Envelopes = false })},
		{1, "no envelopes though asked for", ask(func(r *pack.Request) { r.Envelopes = true })},
	}
}

// actionChanges change what the line of an approval says about the action and the voters.
func actionChanges() (all []change) {
	other := strings.Repeat("ab", 32)
	for _, c := range []struct {
		sample         int
		name, old, new string
	}{
		{7, "another payload of an approval", `\"amount_usd\":1.5`, `\"amount_usd\":1000000`},
		{7, "a payload with white space", `\"amount_usd\":1.5`, `\"amount_usd\": 1.5`},
		{7, "a payload that is no object", `"payload":"`, `"payload":"1","was":"`},
		{7, "a payload in JSON", `"payload":"`, `"payload":{},"was":"`},
		{7, "another agent of an approval", `"agent_id":"agt_1","approval_id"`, `"agent_id":"agt_2","approval_id"`},
		{7, "another tool of an approval", `"tool_name":"acme.payments.refund"`, `"tool_name":"acme.orders.read"`},
		{7, "a payload without a tool", `"tool_name":`, `"tool_names":`},
		{7, "a payload without an agent", `"agent_id":"agt_1","approval_id"`, `"agent_ids":"agt_1","approval_id"`},
		{7, "another action_digest of an approval", `{"action_digest":"`, `{"action_digest":"` + other + `","agent_hash":"`},
		{8, "another action_digest of an approval", `{"action_digest":"`, `{"action_digest":"` + other + `","agent_hash":"`},
		{8, "an action_digest that is no text", `{"action_digest":"`, `{"action_digest":null,"agent_hash":"`},
		{8, "an agent_id that is no text", `"agent_id":"agt_1","approval_id"`, `"agent_id":null,"approval_id"`},
		{8, "a tool_name that is no text", `"tool_name":"acme.payments.refund"`, `"tool_name":1`},
		{8, "people that are no list", `"people":[`, `"people":{},"persons":[`},
		{8, "a voter who has not voted", `"account_id":"acc_1"`, `"account_id":"acc_3"`},
		{8, "a voter twice", `"account_id":"acc_2"`, `"account_id":"acc_1"`},
		{8, "a voter without account_id", `"account_id":"acc_1"`, `"account_id":""`},
		{8, "a voter without e-mail address", `"email":""`, `"email":null`},
		{8, "a member more of a voter", `"email":""`, `"email":"","role":"ceo"`},
		{10, "another subject of an approval", `icé"`, `ícé"`},
		{10, "another actor of an approval", `planner"`, `writer"`},
		{10, "an approval without its subject", `"on_behalf_of":`, `"for":`},
		{10, "a subject that is no object", `"on_behalf_of":`, `"on_behalf_of":"alice","for":`},
		{10, "a subject without a payload", `"payload":"`, `"was":"`},
		{7, "a subject of an approval without one", `"payload":"`, `"on_behalf_of":{},"payload":"`},
		{7, "null as the subject of an approval", `"payload":"`, `"on_behalf_of":null,"payload":"`},
		{0, "an action_digest that no event names", `{"agent_id":`, `{"action_digest":"` + other + `","agent_id":`},
		{0, "a payload that no event names", `"events":[{`, `"payload":"{}","tool_name":"a","events":[{`},
	} {
		all = append(all, change{c.sample, c.name, canonicalLine(c.old, c.new)})
	}
	return all
}

// canonicalLine replaces a text in the line of the approval and makes the line canonical again.
func canonicalLine(old, text string) func(*Parts) {
	return func(p *Parts) {
		replace(pack.FileApprovals, old, text)(p)
		file := p.File(pack.FileApprovals)
		canonical, _, err := jcs.ParseObject(nil, []byte(strings.TrimSuffix(*file, "\n")), jcs.MaxDepth)
		if err != nil {
			panic(err)
		}
		*file = string(canonical) + "\n"
	}
}

// ruleChanges are changes about which verifiers once disagreed.
func ruleChanges() (all []change) {
	const mark = "\ufeff"
	before := func(name string) func(*Parts) { return func(p *Parts) { *p.File(name) = mark + *p.File(name) } }
	for _, name := range []string{pack.FileCheckpoint, pack.FileKeys, pack.FilePolicy, pack.FileAgents, pack.FileRecords,
		pack.FileEnvelopes, pack.FileApprovals, pack.FileErasures} {
		all = append(all, change{0, "a byte order mark before " + name, before(name)})
	}
	key := func(edit func(line string) string) func(*Parts) {
		return func(p *Parts) {
			file := p.File(pack.FileKeys)
			line := strings.TrimSuffix(strings.TrimPrefix(*file, `{"keys":[`), `]}`)
			*file = `{"keys":[` + edit(line) + `]}`
		}
	}
	use := func(text string) func(string) string {
		return func(line string) string { return line + "," + strings.Replace(line, `"use":"log"`, `"use":`+text, 1) }
	}
	return append(all, []change{
		{0, "a byte order mark before manifest.json", func(p *Parts) {
			text, err := p.sealed()
			if err != nil {
				panic(err)
			}
			p.Text = mark + text
		}},
		{0, "a second key for grants", key(use(`"grant"`))},
		{0, "a second key of an unknown use", key(use(`""`))},
		{0, "a second key without use", key(use("null"))},
		{0, "a second key whose use is in upper case", key(use(`"LOG"`))},
		{0, "no key", key(func(string) string { return "" })},
		{0, "a key whose sizes end before they begin", key(func(line string) string {
			return strings.Replace(strings.Replace(line, `"from_size":0`, `"from_size":9`, 1), `"to_size":null`, `"to_size":8`, 1)
		})},
		{0, "a key that is none", key(func(line string) string { return strings.Replace(line, `"vkey":"l`, `"vkey":"m`, 1) })},
		{0, "an empty tlog-policy", func(p *Parts) { *p.File(pack.FilePolicy) = "" }},
		{0, "a tlog-policy without quorum", replace(pack.FilePolicy, "quorum none\n", "")},
		{0, "a tlog-policy without a line end", func(p *Parts) { cut(p.File(pack.FilePolicy), 1) }},
		{0, "a tlog-policy with a carriage return", replace(pack.FilePolicy, "none\n", "none\r\n")},
		{0, "a tlog-policy with an unknown line", replace(pack.FilePolicy, "quorum", "threshold 1\nquorum")},
		{0, "a tlog-policy whose key is none", replace(pack.FilePolicy, "log log", "log lag")},
	}...)
}

func policyFile() string { return pack.PolicyFile(PolicyDigest()) }

func flip(text *string, at int) {
	b := []byte(*text)
	b[at] ^= 1
	*text = string(b)
}

func cut(text *string, n int) { *text = (*text)[:len(*text)-n] }
