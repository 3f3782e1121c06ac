package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
	"github.com/agentledger/agentledger/tlog"
)

var keepStore = flag.String("keep-store", "", "NAME=PROGRAM: TestKeptStores first has PROGRAM, maybe an older one, write the stores of NAME")

const keptStores = "testdata/stores"

// kept describes a stored store as it was when it was written. Its keys and secrets are only for this store.
type kept struct {
	Organizations []foundedOrganization
	Events        []keptEvent
	Heads         map[id.Slug]tlog.Checkpoint
	Erased        string // the trace whose payloads were erased, or "" if the program erases none
}

type keptEvent struct {
	Slug     id.Slug
	Envelope jsontext.Value
	Result   client.Result
}

const dumpName = "dump.sql" // of PostgreSQL, in the folder of a kept store

// Stores of both engines that earlier versions wrote: the current program finds no fault in them, has every event with
// the recorded number and hash, extends the recorded heads, answers retries as replays, and continues.
func TestKeptStores(t *testing.T) {
	t.Parallel()
	if name, program, asked := strings.Cut(*keepStore, "="); asked {
		for _, engine := range []string{"pebble", "postgres"} {
			writeKept(t, program, filepath.Join(keptStores, name+"-"+engine+".tar.gz"), engine == "postgres")
		}
	}
	files, err := filepath.Glob(filepath.Join(keptStores, "*.tar.gz"))
	if err != nil || len(files) < 4 {
		t.Fatalf("got %d stores, %v; want those of two versions at least", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".tar.gz"), func(t *testing.T) { openKept(t, file) })
	}
}

// writeKept has a program write a store with two organizations.
func writeKept(t *testing.T, program, file string, onPostgres bool) {
	t.Helper()
	dir := t.TempDir()
	var store []string
	var database *pgtest.Server
	if onPostgres {
		database = startDatabase(t)
		store = []string{"--storage", database.URL()}
	}
	cmd := exec.Command(program, append([]string{"serve", "--data", dir, "--listen", "127.0.0.1:0", "--id-listen", "127.0.0.1:0",
		"--metrics-listen", "", "--public-url", "http://log.test"}, store...)...)
	cmd.Env = append(os.Environ(), "AGENTLEDGER_PLATFORM_SECRET="+testSecret)
	p, err := launch(cmd)
	if err != nil {
		t.Fatal(err)
	}
	p.t = t
	defer p.kill()
	k := kept{Organizations: []foundedOrganization{p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil)},
		Heads: map[id.Slug]tlog.Checkpoint{}}
	activate(t, p, "ops@red.example", jsontext.Value(spendingPolicy), "spending")
	for n, org := range k.Organizations {
		k.fill(t, p, org, 300/(1+9*n)) // the first tile of one of them is full
	}
	k.erase(t, p, k.Organizations[0])
	p.terminate()
	told, err := json.Marshal(k, jsontext.WithIndent(" "))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "kept.json"), told, 0o600)
	}
	if err == nil && onPostgres {
		var dump []byte
		if dump, err = database.Dump(); err == nil {
			err = os.WriteFile(filepath.Join(dir, dumpName), dump, 0o600)
		}
	}
	if err == nil {
		err = packFolder(dir, file)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func startDatabase(t *testing.T) *pgtest.Server {
	t.Helper()
	s, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop() })
	return s
}

// activate activates a policy of an organization.
func activate(t *testing.T, p *process, email string, document jsontext.Value, policy string) {
	t.Helper()
	o, err := newOperator(p.main, p.identity)
	if err == nil {
		err = o.signIn(t.Context(), email, testPassword)
	}
	if err == nil {
		err = o.callConsole(t.Context(), "POST", "/policies", document, nil)
	}
	if err == nil {
		err = o.callConsole(t.Context(), "POST", "/policies/"+policy+"/activate", struct{}{}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fill sends single events and a batch, and records the answers.
func (k *kept) fill(t *testing.T, p *process, org foundedOrganization, batch int) {
	t.Helper()
	w, err := newWorker(p.main, org, once)
	if err != nil {
		t.Fatal(err)
	}
	var envelopes [][]byte
	for i := range batch + 3 {
		trace := fmt.Sprint(org.Slug, ".", i%5)
		e, err := w.signer.SignEvent(client.Event{EventID: id.Event(fmt.Sprint(trace, "-", i)), TraceID: id.Trace(trace), ActorPrincipal: "worker", ActionKind: "tool_call", Tool: "acme.pay.refund", Decision: id.Allow, Payload: map[string]any{"amount": i}})
		if err != nil {
			t.Fatal(err)
		}
		envelopes = append(envelopes, e)
	}
	outcomes := w.client.SendBatch(t.Context(), envelopes[:batch])
	for _, e := range envelopes[batch:] {
		result, err := w.client.Send(t.Context(), e)
		outcomes = append(outcomes, client.Outcome{Result: result, Err: err})
	}
	for i, o := range outcomes {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		k.Events = append(k.Events, keptEvent{org.Slug, envelopes[i], o.Result})
	}
	if k.Heads[org.Slug], err = w.log.fetchHead(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// erase erases the payloads of one trace if the program can, and records the head after that.
func (k *kept) erase(t *testing.T, p *process, org foundedOrganization) {
	t.Helper()
	d := &drill{t: t, orgs: []foundedOrganization{org}, erasures: map[string]begun{}}
	o, err := newOperator(p.main, p.identity)
	if err == nil {
		err = o.signIn(t.Context(), "ops@"+string(org.Slug)+".example", testPassword)
	}
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		ID string `json:"erasure_id"`
	}
	trace := string(org.Slug) + ".4"
	err = o.callConsole(t.Context(), "POST", "/erasures", map[string]any{"trace_id": trace, "reason": "test_data"}, &answer)
	if err != nil {
		t.Logf("nothing was erased: %v", err)
		return
	}
	k.Erased, d.erasures[trace] = trace, begun{org.Slug, answer.ID}
	d.awaitErasures(p)
	l, err := newPublicLog(p.main, org)
	if err == nil {
		k.Heads[org.Slug], err = l.fetchHead(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func openKept(t *testing.T, file string) {
	dir := t.TempDir()
	if err := unpackFolder(file, dir); err != nil {
		t.Fatal(err)
	}
	var k kept
	told, err := os.ReadFile(filepath.Join(dir, "kept.json"))
	if err == nil {
		err = json.Unmarshal(told, &k)
	}
	if err != nil {
		t.Fatal(err)
	}
	var store []string
	dump, err := os.ReadFile(filepath.Join(dir, dumpName))
	if err == nil {
		database := startDatabase(t)
		if err := database.Load(dump); err != nil {
			t.Fatal(err)
		}
		store = []string{"--storage", database.URL()}
		// An older schema is readable only after an upgrade, which needs a start.
		startProcess(t, dir, store...).terminate()
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	fsck := append([]string{"fsck", "--data", dir}, store...)
	if out, exit := command(t, "agentledger", fsck...); exit != 0 {
		t.Errorf("fsck of the stored store: exit %d\n%s", exit, out)
	}
	p := startProcess(t, dir, store...)
	k.wantAll(t, p, dir)
	p.terminate()
	if out, exit := command(t, "agentledger", fsck...); exit != 0 {
		t.Errorf("fsck afterwards: exit %d\n%s", exit, out)
	}
}

// wantAll checks everything that was recorded, and continues.
func (k *kept) wantAll(t *testing.T, p *process, dir string) {
	t.Helper()
	d := &drill{t: t, dir: dir, orgs: k.Organizations, acknowledged: map[id.Slug]map[id.Event]client.Result{}, late: map[id.Event]bool{},
		asked: map[string]bool{k.Erased: true}, erasures: map[string]begun{k.Erased: {}}}
	workers := map[id.Slug]*worker{}
	for _, org := range k.Organizations {
		d.acknowledged[org.Slug] = map[id.Event]client.Result{}
		d.heads = append(d.heads, shown{org, k.Heads[org.Slug]})
		w, err := newWorker(p.main, org, once)
		if err != nil {
			t.Fatal(err)
		}
		workers[org.Slug] = w
	}
	denied := 0
	for _, e := range k.Events {
		d.acknowledged[e.Slug][e.Result.EventID] = e.Result
		if e.Result.Decision == id.Deny {
			denied++
		}
		again, err := workers[e.Slug].client.Send(t.Context(), e.Envelope)
		if err != nil || again.Status != client.Replayed {
			t.Errorf("%s: sent again: got %+v, %v, want a replay", e.Result.EventID, again, err)
		}
	}
	if d.count() < 300 || denied == 0 {
		t.Errorf("got %d events, %d of them denied", d.count(), denied)
	}
	d.verifySample(p, 1<<30)
	for _, w := range workers {
		wantNew(t, w)
	}
	activate(t, p, "ops@blue.example", jsontext.Value(spendingPolicy), "spending")
}

// wantNew sends an event that the store does not have.
func wantNew(t *testing.T, w *worker) {
	t.Helper()
	e, err := w.signer.SignEvent(client.Event{EventID: "afterwards", TraceID: "trace-1", ActorPrincipal: "worker", ActionKind: "tool_call",
		Tool: "acme.pay.refund", Decision: id.Allow, Payload: map[string]any{"amount": 1}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := w.client.Send(t.Context(), e); err != nil || got.Status != client.Created {
		t.Errorf("%s: a new event: got %+v, %v", w.org.Slug, got, err)
	}
}

// packFolder writes a folder into a file.
func packFolder(dir, file string) error {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	w := tar.NewWriter(z)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		return err
	}
	if err := errors.Join(w.Close(), z.Close(), os.MkdirAll(filepath.Dir(file), 0o755)); err != nil {
		return err
	}
	return os.WriteFile(file, packed.Bytes(), 0o644)
}

// unpackFolder reads a file of packFolder.
func unpackFolder(file, dir string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.FileInfo().IsDir() {
			if err := os.MkdirAll(path, 0o700); err != nil {
				return err
			}
			continue
		}
		content, err := io.ReadAll(r)
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600))
		}
		if err != nil {
			return err
		}
	}
}
