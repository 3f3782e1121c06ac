package interop

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	formatsnote "github.com/transparency-dev/formats/note"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/mod/sumdb/note"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/operate/witness"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// movingLogs is the number of logs that move concurrently.
const movingLogs = 100

// crowd is a service with many logs in the embedded engine, and its witnesses.
type crowd struct {
	ledgers   *log.Ledgers
	store     witness.Store
	tenants   []id.Tenant
	witnesses *witness.Witnesses
	registry  *prometheus.Registry
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	keyring, err := seal.NewKeyring(seal.NewKey())
	must(t, err)
	dir := t.TempDir()
	c := &crowd{registry: prometheus.NewRegistry()}
	store, err := pebblestore.Open(pebblestore.Options{Dir: filepath.Join(dir, "db")})
	must(t, err)
	t.Cleanup(func() { store.Close() })
	c.store = store
	anchors, err := anchor.Open(filepath.Join(dir, "anchors"))
	must(t, err)
	c.ledgers, err = log.Open(context.Background(), log.Options{Store: store, Keyring: keyring, Anchors: anchors})
	must(t, err)
	t.Cleanup(func() { c.ledgers.Close() })
	for i := range movingLogs {
		tenant, organization := id.Tenant(i+1), id.Organization{14: byte(i >> 8), 15: byte(i)}
		_, err := c.ledgers.Create(t.Context(), tenant, log.Genesis{Organization: organization, Origin: id.Origin("log.example/o/" + organization.String())})
		must(t, err)
		c.tenants = append(c.tenants, tenant)
	}
	return c
}

// keys returns the verifier keys of all logs.
func (c *crowd) keys(t *testing.T) (keys []string) {
	t.Helper()
	for _, tenant := range c.tenants {
		state, err := c.ledgers.State(t.Context(), tenant)
		must(t, err)
		keys = append(keys, state.VerifierKey().String())
	}
	return keys
}

// ask asks a witness about all logs until the test ends, with the intervals of a service.
func (c *crowd) ask(t *testing.T, policy *trust.Policy) {
	t.Helper()
	c.witnesses = witness.New(witness.Options{
		Store: c.store, Ledgers: c.ledgers, Organizations: noPolicy{}, Service: policy, Metrics: c.registry,
		Client: egress.New(egress.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, MaxAnswer: witness.MaxAnswer}),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { c.witnesses.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
}

// move appends an event to each log concurrently.
func (c *crowd) move(t *testing.T, round int) {
	t.Helper()
	var moving sync.WaitGroup
	for _, tenant := range c.tenants {
		moving.Go(func() {
			_, err := c.ledgers.Append(t.Context(), tenant, func(_ context.Context, state *log.State) (log.Submission, error) {
				return log.Submission{Drafts: []log.Draft{draft(state.Identity(), fmt.Sprintf("evt-%d", round))}}, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	moving.Wait()
}

// awaitCosigned waits until the latest checkpoint of each log has the cosignature of key.
func (c *crowd) awaitCosigned(t *testing.T, key tlog.WitnessKey) {
	t.Helper()
	end := time.Now().Add(2 * time.Minute)
	for _, tenant := range c.tenants {
		for !c.isCosigned(t, tenant, key) {
			if time.Now().After(end) {
				t.Fatalf("log %d is not cosigned: %v", tenant, c.asks(t))
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func (c *crowd) isCosigned(t *testing.T, tenant id.Tenant, key tlog.WitnessKey) bool {
	t.Helper()
	state, err := c.ledgers.State(t.Context(), tenant)
	must(t, err)
	text, err := c.witnesses.Checkpoint(t.Context(), state)
	must(t, err)
	checkpoint, err := tlog.ReadCheckpoint(text)
	must(t, err)
	parsed, err := tlog.ParseNote(text)
	must(t, err)
	_, err = key.Cosigned(parsed)
	return err == nil && checkpoint.Size == state.Size()
}

// asks returns the number of queries by outcome and the number of calls by status.
func (c *crowd) asks(t *testing.T) map[string]int {
	t.Helper()
	families, err := c.registry.Gather()
	must(t, err)
	counts := make(map[string]int)
	for _, f := range families {
		if name := f.GetName(); name != "agentledger_witness_asks_total" && name != "agentledger_witness_calls_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() != "witness" {
					counts[label.GetValue()] += int(m.GetCounter().GetValue())
				}
			}
		}
	}
	return counts
}

// buildWitnesses builds the programs of module interop/witnesses.
func buildWitnesses(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	build := exec.Command("go", "build", "-o", folder+string(filepath.Separator), "tool")
	build.Dir = "witnesses"
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, output)
	}
	return folder
}

// run starts a program that ends with the test, and waits until it answers at address.
func run(t *testing.T, address, program string, args ...string) {
	t.Helper()
	var output bytes.Buffer
	p := exec.Command(program, args...)
	p.Stdout, p.Stderr = &output, &output
	must(t, p.Start())
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	t.Cleanup(func() {
		p.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("%s: %s", filepath.Base(program), output.String())
		}
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		r, err := http.Get("http://" + address + "/")
		if err == nil {
			r.Body.Close()
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s ended: %v\n%s", filepath.Base(program), err, output.String())
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not answer: %v", filepath.Base(program), err)
		}
	}
}

// startOmniwitness starts it with SQLite and logs with these keys. Its built-in logs are not fed.
func startOmniwitness(t *testing.T, programs string, keys []string) (address string, public string) {
	t.Helper()
	secret, public, err := note.GenerateKey(rand.Reader, "omniwitness.example")
	must(t, err)
	public, err = formatsnote.VKeyToCosignatureV1(public)
	must(t, err)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "key"), []byte(secret), 0o600))
	logs := "Logs:\n"
	for _, k := range keys {
		origin, _, _ := strings.Cut(k, "+")
		logs += fmt.Sprintf("  - Origin: %s\n    URL: http://127.0.0.1:1\n    PublicKey: %s\n    Feeder: none\n", origin, k)
	}
	must(t, os.WriteFile(filepath.Join(dir, "logs.yaml"), []byte(logs), 0o600))
	address = FreeAddress(t)
	run(t, address, filepath.Join(programs, "omniwitness"), "--listen", address, "--metrics_listen", "",
		"--db_file", filepath.Join(dir, "db"), "--private_key_path", filepath.Join(dir, "key"), "--additional_logs", filepath.Join(dir, "logs.yaml"))
	return address, public
}

// startLitewitness starts it with an ssh-agent of this process that holds its key.
func startLitewitness(t *testing.T, programs string, keys []string) (address string, public string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	ring := agent.NewKeyring()
	must(t, ring.Add(agent.AddedKey{PrivateKey: &private}))
	signers, err := ring.Signers()
	must(t, err)
	dir, err := os.MkdirTemp("", "witness") // shorter than the folder of a test, because a socket's path is short
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket, err := net.Listen("unix", filepath.Join(dir, "agent"))
	must(t, err)
	t.Cleanup(func() { socket.Close() })
	go func() {
		for {
			c, err := socket.Accept()
			if err != nil {
				return
			}
			go agent.ServeAgent(ring, c)
		}
	}()
	list := "logs/v0\n"
	for _, k := range keys {
		list += "vkey " + k + "\n"
	}
	must(t, os.WriteFile(filepath.Join(dir, "logs"), []byte(list), 0o600))
	db := filepath.Join(dir, "db")
	if output, err := exec.Command(filepath.Join(programs, "witnessctl"), "pull-logs", "-db", db, "-source", filepath.Join(dir, "logs")).CombinedOutput(); err != nil {
		t.Fatalf("witnessctl: %v\n%s", err, output)
	}
	address = FreeAddress(t)
	run(t, address, filepath.Join(programs, "litewitness"), "-listen", address, "-db", db, "-name", "litewitness.example",
		"-ssh-agent", filepath.Join(dir, "agent"), "-key", ssh.FingerprintSHA256(signers[0].PublicKey()))
	r, err := http.Get("http://" + address + "/")
	must(t, err)
	defer r.Body.Close()
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		if _, after, found := strings.Cut(lines.Text(), "litewitness.example+"); found {
			public, _, _ = strings.Cut("litewitness.example+"+after, "<")
			return address, strings.TrimSpace(public)
		}
	}
	t.Fatal("litewitness does not show its key")
	return "", ""
}

// A hundred logs that move concurrently are cosigned by third-party witnesses, without a pause of the witness. The
// test logs the time.
func TestWitnessPrograms(t *testing.T) {
	programs := buildWitnesses(t)
	for name, start := range map[string]func(*testing.T, string, []string) (address, public string){
		"omniwitness": startOmniwitness, "litewitness": startLitewitness,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t)
			address, public := start(t, programs, c.keys(t))
			policy, err := trust.Parse([]byte("witness w " + public + " http://" + address + "\nquorum w\n"))
			must(t, err)
			c.ask(t, policy)
			for round := range 3 {
				began := time.Now()
				c.move(t, round)
				c.awaitCosigned(t, policy.Witnesses[0].Key)
				t.Logf("round %d: %d logs moved and were cosigned after %s: %v", round, len(c.tenants), time.Since(began).Round(time.Millisecond), c.asks(t))
			}
			if counts := c.asks(t); counts["unwell"]+counts["skipped"]+counts["failed"] > 0 {
				t.Errorf("the witness was left alone: %v", counts)
			}
		})
	}
}
