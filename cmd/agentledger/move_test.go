package main

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// Two organizations move from the embedded store to PostgreSQL and then to another embedded store, while export and
// import are repeatedly killed by SIGKILL. Nothing changes on the way: the stores' own exports are identical, except
// that an imported account is unproved, and so are the bundles that their servers return.
func TestMoveKilled(t *testing.T) {
	t.Parallel()
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	m := &mover{t: t, random: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))}
	here := t.TempDir()
	p := startProcess(t, here)
	m.orgs = []foundedOrganization{p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil)}
	m.fill(p, m.orgs[0], 3000)
	m.fill(p, m.orgs[1], 1500)
	bundles := m.bundles(p)
	p.terminate()

	from := []string{"--data", here}
	reference := filepath.Join(t.TempDir(), "reference")
	m.once(append([]string{"export", "--to", reference}, from...)...)
	for _, storage := range []string{server.URL(), ""} {
		export := filepath.Join(t.TempDir(), "export")
		m.killed(append([]string{"export", "--to", export, "--piece-kib", "512"}, from...)...)
		there := t.TempDir()
		copyFile(t, filepath.Join(here, "master.key"), filepath.Join(there, "master.key"))
		to := []string{"--data", there}
		if storage != "" {
			to = append(to, "--storage", storage)
		}
		if out, exit := command(t, "agentledger", append([]string{"import", "--from", export}, to...)...); exit != 2 ||
			!strings.Contains(out, "(owner)") || !strings.Contains(out, "plan enterprise") || !strings.Contains(out, "--yes") {
			t.Errorf("an import without a terminal that can answer: status %d, %s", exit, out)
		}
		m.killed(append([]string{"import", "--yes", "--from", export}, to...)...)
		again := filepath.Join(t.TempDir(), "again")
		m.once(append([]string{"export", "--to", again}, to...)...)
		wantMovedPieces(t, again, reference)
		if out, exit := command(t, "agentledger", append([]string{"fsck"}, to...)...); exit != 0 {
			t.Errorf("fsck: %s", out)
		}
		p := startProcess(t, there, to[2:]...)
		for name, got := range m.bundles(p) {
			if !bytes.Equal(got, bundles[name]) {
				t.Errorf("bundle of %s: got\n%s\nwant\n%s", name, got, bundles[name])
			}
		}
		p.terminate()
		from, here = to, there
	}
}

type mover struct {
	t      *testing.T
	random *rand.Rand
	orgs   []foundedOrganization
	kills  int
}

// fill sends n events in batches.
func (m *mover) fill(p *process, org foundedOrganization, n int) {
	m.t.Helper()
	w, err := newWorker(p.main, org, client.Retry{})
	if err != nil {
		m.t.Fatal(err)
	}
	for sent := 0; sent < n; sent += 500 {
		var batch [][]byte
		for i := range 500 {
			envelope, err := w.signer.SignEvent(client.Event{
				EventID: m.name(org, sent+i), TraceID: "move", ActorPrincipal: "drill", ActionKind: "tool_call",
				Tool: "acme.orders.read", Decision: id.Allow, Payload: map[string]any{"text": strings.Repeat("x", m.random.IntN(600))},
			})
			if err != nil {
				m.t.Fatal(err)
			}
			batch = append(batch, envelope)
		}
		for _, o := range w.client.SendBatch(m.t.Context(), batch) {
			if o.Err != nil {
				m.t.Fatal(o.Err)
			}
		}
	}
}

func (m *mover) name(org foundedOrganization, i int) id.Event {
	return id.Event(fmt.Sprintf("%s-%d", org.Slug, i))
}

// bundles fetches the public bundles of some events, without the operator's statement about its re-verification, which
// continues.
func (m *mover) bundles(p *process) map[id.Event][]byte {
	m.t.Helper()
	all := make(map[id.Event][]byte)
	for _, org := range m.orgs {
		l, err := newPublicLog(p.main, org)
		if err != nil {
			m.t.Fatal(err)
		}
		for i := 0; i < 1000; i += 97 {
			bundle, err := l.client.FetchBundle(m.t.Context(), org.Slug, m.name(org, i))
			if err != nil {
				m.t.Fatal(err)
			}
			proved, _, found := bytes.Cut(bundle, []byte(`"operator_statement"`))
			if !found {
				m.t.Fatalf("no operator's statement in %s", bundle)
			}
			all[m.name(org, i)] = proved
		}
	}
	return all
}

// once runs a command that must succeed.
func (m *mover) once(args ...string) {
	m.t.Helper()
	if out, exit := command(m.t, "agentledger", args...); exit != 0 {
		m.t.Fatalf("%s: exit %d\n%s", args[0], exit, out)
	}
}

// moveKills is how often each command is killed before it runs to its end.
var moveKills = flag.Int("move-kills", 2, "how often TestMoveKilled kills each export and import")

// killed runs a command that is killed at random moments, then to its end.
func (m *mover) killed(args ...string) {
	m.t.Helper()
	kills := 0
	for kills < *moveKills {
		cmd := exec.Command(filepath.Join(programs, "agentledger"), args...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			m.t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(100+m.random.IntN(900))*time.Millisecond, func() { cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if err == nil {
			break
		}
		if cmd.ProcessState.Exited() { // it ended
			m.t.Fatalf("%s: %v\n%s", args[0], err, &out)
		}
		kills++
	}
	m.t.Logf("%s was killed %d times", args[0], kills)
	m.kills += kills
	m.once(args...)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// wantSamePieces compares every byte of two exports except their manifests, which contain their times.
func wantSamePieces(t *testing.T, got, want string) {
	t.Helper()
	comparePieces(t, got, want, func(_ string, g, w []byte) ([]byte, []byte) { return g, w })
}

// wantMovedPieces compares an export of an imported organization with the export that it was imported from. They differ
// only in that an import makes every account unproved.
func wantMovedPieces(t *testing.T, got, want string) {
	t.Helper()
	comparePieces(t, got, want, func(path string, g, w []byte) ([]byte, []byte) {
		if filepath.Base(path) != "service.ndjson" {
			return g, w
		}
		wantUnproved(t, filepath.Base(filepath.Dir(path)), g)
		return withoutProofs(t, g), withoutProofs(t, w)
	})
}

// comparePieces compares what compared returns for each file of the two exports except their manifests.
func comparePieces(t *testing.T, got, want string, compared func(path string, g, w []byte) ([]byte, []byte)) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(want, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "manifest.ndjson" {
			return err
		}
		name, _ := filepath.Rel(want, path)
		w, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		g, err := os.ReadFile(filepath.Join(got, name))
		if err != nil {
			return err
		}
		if g, w = compared(path, g, w); !bytes.Equal(g, w) {
			t.Errorf("%s differs", name)
		}
		files++
		return nil
	})
	if err != nil || files < 6 {
		t.Errorf("%d files compared, %v", files, err)
	}
}

// proofMember is the member of an account's record that states how its address was proved.
var proofMember = regexp.MustCompile(`,"proof":(\{[^{}]*\})`)

// endDigest is the SHA-256 and the authenticator in the last line of a piece. They cover the lines before, including
// the proofs.
var endDigest = regexp.MustCompile(`"sha256":"[0-9a-f]{64}",|,"authenticator":"[0-9a-f]{64}"`)

// withoutProofs removes the proof from each account's line and the digest from the last line, and keeps every other
// byte.
func withoutProofs(t *testing.T, lines []byte) []byte {
	t.Helper()
	var all []byte
	accounts := 0
	for line := range bytes.Lines(lines) {
		if bytes.HasPrefix(line, []byte(`{"kind":"account",`)) {
			accounts++
			line = proofMember.ReplaceAll(line, nil)
		}
		if bytes.HasPrefix(line, []byte(`{"end":`)) {
			line = endDigest.ReplaceAll(line, nil)
		}
		all = append(all, line...)
	}
	if accounts == 0 {
		t.Error("no accounts in the service's records")
	}
	return all
}

// wantUnproved checks that an import has made every account of the organization unproved.
func wantUnproved(t *testing.T, organization string, lines []byte) {
	t.Helper()
	for line := range bytes.Lines(lines) {
		if !bytes.HasPrefix(line, []byte(`{"kind":"account",`)) {
			continue
		}
		proof := proofMember.FindSubmatch(line)
		if proof == nil || !bytes.HasPrefix(proof[1], []byte(`{"by":"none","home":`)) {
			t.Errorf("%s: an imported account is proved by %s", organization, proof)
		}
	}
}
