// Package readers runs each reader of a log in this repository against dishonest servers. The table of the results is
// also in docs/audit/readers.md.
package readers

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/tlog"
)

var update = flag.Bool("update", false, "write the table of docs/audit/readers.md anew")

func TestMain(m *testing.M) { os.Exit(servicetest.Main(m)) }

// verdict is the result of a reader.
type verdict struct {
	words   string // in the document
	accepts bool
	says    string // a part of the answer
}

func refuses(words, says string) verdict { return verdict{words, false, says} }

// accepts returns the verdict of a reader that accepts the log. mark identifies the note that explains why it accepts a
// dishonest server.
func accepts(mark, says string) verdict {
	return verdict{strings.TrimSpace("accepts " + mark), true, says}
}

var yes = accepts("", "")

// notes maps marks to the explanations why a reader accepts a dishonest server.
var notes = []struct{ mark, text string }{
	{"¹", "It keeps nothing between two runs. It checks each bundle under the pinned key, and this bundle is right. A monitor compares trees, as does the second proof by the [directory](../spec/directory.md#the-second-proof)."},
	{"²", "It has a key and no policy, so it looks at no cosignatures. `verify.Check` takes the policy's witnesses."},
	{"³", "It names the time by which a quorum had cosigned. A bundle shows what the log contained by then, and does not claim to be recent."},
	{"⁴", "It states that the cosignature is in the future or proves no time. What the witness saw still counts."},
	{"⁵", "It shows the age of the view, and that it may be out of date."},
	{"⁶", "A bundle may rest on an older checkpoint. The page states that this one is in the history of the larger tree that it saw, after it proved that."},
	{"⁷", "It keeps nothing between two runs, and trusts the keys that it was given and no other. It checks the statement of the new key [as a bundle](../spec/log.md#a-new-key)."},
	{"⁸", "It keeps nothing between two runs, and the key that was replaced is pinned. Pin the new key after a rotation."},
}

// row is one server with the verdicts at the last visit, in the order of readers.
type row struct {
	name, does string
	witnessed  bool   // the log has a witness, whose quorum readers with a policy require
	after      string // the server of a visit between the first and the last one, or "" for none
	verdicts   []verdict
}

func verdicts(all ...verdict) []verdict { return all }

var (
	rightKey = refuses("unknown key", "signature")
	oldKey   = refuses("retired key", "signature")
	noProof  = refuses("no proof", "mismatch")
	badProof = refuses("no proof", "another root")
	twoRoots = refuses("fork", "fork: two trees of size 6")
	rollback = refuses("rollback", "rollback: ")
	retired  = refuses("retired key", " alone, which no longer signs trees of this size")
	stated   = accepts("", "that an entry of the log states; the key ")
	unstated = refuses("unknown key", ", which this browser does not know: no entry of the log under a known key states this key")
)

var rows = []row{
	{"honest", "shows a larger tree of the same history", false, "",
		verdicts(yes, yes, yes, yes, yes, yes, yes)},
	{"honest, two keys", "the log's key is being rotated: the old key and the new one sign", false, "",
		verdicts(accepts("", "new key: "), yes, accepts("", "replaces"), accepts("", "replaces"), accepts("", "replaces"), yes, yes)},
	{"honest rotation", "the log's key was rotated, and only the new key signs", false, "",
		verdicts(accepts("", "new key: "), refuses("unknown key ⁷", "status 2: aps: can't tell"),
			accepts("", "replaces"), accepts("", "replaces"), accepts("", "replaces"), stated, stated)},
	{"honest, rotated twice", "the log's key was rotated twice between the visits", false, "",
		verdicts(accepts("", "new key: "), refuses("unknown key ⁷", "status 2: aps: can't tell"),
			accepts("", "replaces"), accepts("", "replaces"), accepts("", "replaces"), stated, stated)},
	{"fork", "shows a larger tree of another history, signed by the log's key", false, "",
		verdicts(refuses("fork", "status 1: aps: fork: "), accepts("¹", ""), noProof, noProof, noProof,
			refuses("fork", "Not proved: fork: "), refuses("fork", "Not proved: fork: "))},
	{"two roots at one size", "shows another tree of the same size, signed by the log's key", false, "",
		verdicts(refuses("fork", "status 1: aps: fork: two signed heads of one size"), accepts("¹", ""), twoRoots, twoRoots, twoRoots,
			refuses("fork", "fork: two trees of one size"), refuses("fork", "fork: two trees of one size"))},
	{"rollback", "shows an older tree of the same history, and claims that it extends the newer one", false, "",
		verdicts(refuses("rollback", "status 1: aps: rollback: "), accepts("¹", ""), rollback, rollback, rollback,
			refuses("rollback", "Not proved: rollback: the service shows a tree of 3 entries"), accepts("⁶", "in the history of the larger tree that this browser saw"))},
	{"freeze", "shows the same tree and the same cosignature for hours", true, "",
		verdicts(refuses("old view", "status 2: aps: can't tell: log.example/o/00000000-0000-0000-0000-00000000000b: no recent cosignature"),
			accepts("³", "by 20"), accepts("²", ""), accepts("³", "by 20"), accepts("³", "by 20"),
			accepts("⁵", "so this view may be out of date"), accepts("³", "a quorum of them by 20"))},
	{"future time", "shows a cosignature of a time that has not come", true, "",
		verdicts(refuses("no time", "status 2: aps: can't tell: log.example/o/00000000-0000-0000-0000-00000000000b: no recent cosignature"),
			accepts("⁴", "in the future"), accepts("²", ""), accepts("⁴", "in the future"), accepts("⁴", "in the future"),
			accepts("⁴", "in the future, which proves no time"), accepts("⁴", "but that proves no time"))},
	{"foreign key", "signs the log's tree with another key, and lists this key alone", false, "",
		verdicts(refuses("unknown key", "status 2: aps: can't tell"), refuses("unknown key", "status 2: aps: can't tell"),
			rightKey, rightKey, rightKey, unstated, unstated)},
	{"key rotated by an attacker", "adds an event that states its own key, and forges the signature of the log's key under it", false, "",
		verdicts(refuses("unknown key", "status 2: aps: can't tell"), refuses("unknown key", "status 2: aps: can't tell"),
			rightKey, rightKey, rightKey, refuses("unknown key", "the statement of the key"), refuses("unknown key", "the statement of the key"))},
	{"fork with another key", "rotates the log's key in another history, so that the log's key signed the event", false, "",
		verdicts(refuses("fork", "status 1: aps: fork: "), refuses("unknown key", "status 2: aps: can't tell"),
			noProof, noProof, noProof, refuses("fork", ": fork: the service has another tree of 6 entries"), refuses("fork", ": fork: the service has another tree of 6 entries"))},
	{"retired key signs", "after an honest rotation, signs a larger tree with the key that was replaced", false, "honest rotation",
		verdicts(refuses("retired key", "status 2: aps: can't tell: "), accepts("⁸", ""), oldKey, oldKey, oldKey, retired, retired)},
	{"retired key signs during the rotation", "after a visit at which two keys signed, signs a larger tree with the older key alone", false, "honest, two keys",
		verdicts(refuses("retired key", "status 2: aps: can't tell: "), accepts("⁸", ""), oldKey, oldKey, oldKey, retired, retired)},
	{"retired key rotates again", "after an honest rotation, states another key in an old tree, signed by the key that was replaced", false, "honest rotation",
		verdicts(refuses("unknown key", "no line of a known key that still signs"), refuses("unknown key", "status 2: aps: can't tell"),
			rightKey, rightKey, rightKey, refuses("unknown key", "no line of a known key that still signs"),
			refuses("unknown key", "no line of a known key that still signs"))},
	{"forged consistency", "shows an honest tree with wrong proofs and tiles", false, "",
		verdicts(refuses("tampering", "status 1: aps: tampering: "), accepts("¹", ""), badProof, badProof, badProof,
			refuses("no proof", "no valid proof between sizes 6 and 9"), refuses("no proof", "no valid proof between sizes 6 and 9"))},
}

// servers are the views at the first and the second visit.
type servers struct {
	first, firstWitnessed view
	second                map[string]view
	key                   tlog.VerifierKey
	policy                string // file
}

func newServers(t *testing.T) *servers {
	base := newWorld(t).grow(t, 3, "one")
	key, foreign := base.key(t), newSigner(t, ledgertest.Origin(ledgertest.Red))
	witness, err := tlog.NewWitnessSigner("witness.example", edkey.NewPrivate())
	if err != nil {
		t.Fatal(err)
	}
	older := base.copy(t)
	fork, equal := base.copy(t).grow(t, 9, "two"), base.copy(t).grow(t, 6, "two")
	forkedKey := base.copy(t).grow(t, 6, "two").rotate(t).grow(t, 12, "two")
	grown := base.copy(t).grow(t, 6, "one")
	seen, honest, both := grown.copy(t), grown.copy(t).grow(t, 9, "one"), grown.copy(t).addKey(t).grow(t, 10, "one")
	rotated := grown.copy(t).rotate(t).grow(t, 12, "one")
	twice, stale := grown.copy(t).rotate(t).grow(t, 12, "one").rotate(t).grow(t, 18, "one"), grown.copy(t).grow(t, 15, "one")
	again := base.copy(t).rotate(t).grow(t, 18, "one")
	roots := map[id.Index]id.Hash{3: older.root(t), 6: seen.root(t)}
	policy := filepath.Join(t.TempDir(), "policy")
	if err := os.WriteFile(policy, []byte("log "+key.String()+"\n"+witnessLines(witness)), 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	hoursAgo := view{world: seen}.witnessed(t, witness, now.Add(-3*time.Hour))
	return &servers{
		key: key, policy: policy, first: view{world: seen}, firstWitnessed: hoursAgo,
		second: map[string]view{
			"honest":                                {world: honest},
			"honest, two keys":                      {world: both},
			"honest rotation":                       {world: rotated},
			"honest, rotated twice":                 {world: twice},
			"retired key signs":                     {world: stale},
			"retired key signs during the rotation": {world: stale},
			"retired key rotates again":             {world: again},
			"fork":                                  {world: fork},
			"two roots at one size":                 {world: equal},
			"rollback":                              {world: seen, answer: rollBack(older, roots)},
			"freeze":                                hoursAgo,
			"future time":                           view{world: honest}.witnessed(t, witness, now.Add(time.Hour)),
			"foreign key":                           {world: honest, note: resign(t, foreign), text: strings.NewReplacer(key.String(), foreign.Verifier().String())},
			"key rotated by an attacker":            {world: rotated, note: forge(key)},
			"fork with another key":                 {world: forkedKey},
			"forged consistency":                    {world: honest, answer: forgeProofs},
		},
	}
}

// Each reader visits each server twice, and some of them once more in between. The server is honest before the last
// visit. The servers run until the test ends, so each has its own address and a page remembers nothing about another
// server.
func TestDishonestServers(t *testing.T) {
	s := newServers(t)
	for i, reader := range readers {
		read := reader.open(t)
		for _, row := range rows {
			server, want := newServer(t), row.verdicts[i]
			t.Run(row.name+"/"+strings.Trim(reader.name, "`"), func(t *testing.T) {
				v := visit{url: server.url, key: s.key, folder: t.TempDir()}
				first := s.first
				if row.witnessed {
					first, v.policy = s.firstWitnessed, s.policy
				}
				server.show(first)
				v.anyAge = row.witnessed // the clock does not move between the visits
				if got := read(t, v); !strings.HasPrefix(got, accepted) {
					t.Fatalf("first visit: %s", got)
				}
				v.again, v.anyAge = true, false
				if row.after != "" {
					server.show(s.second[row.after])
					if got := read(t, v); !strings.HasPrefix(got, accepted) && reader.name != "`aps verify`" {
						t.Fatalf("%s: %s", row.after, got)
					}
				}
				server.show(s.second[row.name])
				if got := read(t, v); strings.HasPrefix(got, accepted) != want.accepts || !strings.Contains(got, want.says) {
					t.Errorf("got %s, want %+v", got, want)
				}
			})
		}
	}
}

// A row has a verdict for each reader, and a note explains each reader that accepts a dishonest server.
func TestRows(t *testing.T) {
	for _, r := range rows {
		if len(r.verdicts) != len(readers) {
			t.Errorf("%s: got %d verdicts of %d readers", r.name, len(r.verdicts), len(readers))
		}
		for i, v := range r.verdicts {
			if v.accepts && v.words == yes.words && !strings.HasPrefix(r.name, "honest") {
				t.Errorf("%s: %s accepts it without a note", r.name, readers[i].name)
			}
		}
	}
}

const (
	document = "../../../docs/audit/readers.md"
	begin    = "<!-- the table of internal/test/readers -->\n"
	end      = "<!-- end of the table -->"
)

// table renders the rows and the notes.
func table() string {
	var b strings.Builder
	b.WriteString("| Server |")
	for _, r := range readers {
		fmt.Fprintf(&b, " %s |", r.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(readers)) + "\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| **%s**: %s |", r.name, r.does)
		for _, v := range r.verdicts {
			fmt.Fprintf(&b, " %s |", v.words)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for _, n := range notes {
		fmt.Fprintf(&b, "%s %s\n\n", n.mark, n.text)
	}
	return b.String()
}

// The table in the documents matches the table of the tests.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	shown, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no table of servers and readers", document)
	}
	if *update {
		if err := os.WriteFile(document, []byte(before+begin+table()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if shown != table() {
		t.Errorf("%s shows another table: run go test ./internal/test/readers -run Document -update", document)
	}
}

// A monitor that has followed a rotation continues under the old key and under the new one alone. What only the old key
// signed does not count any more.
func TestMonitorAfterRotation(t *testing.T) {
	s := newServers(t)
	server := newServer(t)
	v := visit{url: server.url, key: s.key, folder: t.TempDir()}
	for _, visited := range []struct {
		server view
		says   string
	}{{s.first, "6 entries (6 new)"}, {s.second["honest rotation"], "new key: "}, {s.second["honest rotation"], "12 entries (0 new)"}} {
		server.show(visited.server)
		got := monitorLog(t, v)
		if !strings.HasPrefix(got, accepted) || !strings.Contains(got, visited.says) || visited.says != "new key: " && strings.Contains(got, "new key") {
			t.Errorf("got %s, want %s", got, visited.says)
		}
	}
	foreign := newSigner(t, ledgertest.Origin(ledgertest.Red)).Verifier()
	for _, given := range []struct {
		key  tlog.VerifierKey
		says string
	}{{foreign, "state file can't be used"}, {s.second["honest rotation"].key(t), accepted}, {s.key, accepted}} {
		v.key = given.key
		if got := monitorLog(t, v); !strings.Contains(got, given.says) {
			t.Errorf("with --key %s: got %s, want %s", given.key, got, given.says)
		}
	}
}
