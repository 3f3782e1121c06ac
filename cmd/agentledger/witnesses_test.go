package main

import (
	"context"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// witnessedBy gives a service witnesses on this machine.
func witnessedBy(t *testing.T, policy string) func(*config.Serve) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "witnesses.policy")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(c *config.Serve) {
		c.WitnessPolicyFile, c.WitnessInterval, c.WitnessMaxLag = file, 100*time.Millisecond, time.Minute
		c.CalloutAllow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}
}

// sendOne sends an event, which must be accepted, and returns its name.
func sendOne(t *testing.T, w *worker) id.Event {
	t.Helper()
	body, err := w.signer.SignEvent(client.Event{TraceID: "t", ActorPrincipal: "p", ActionKind: "tool_call", Decision: id.Allow})
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := w.client.Send(t.Context(), body)
	if err != nil {
		t.Fatal(err)
	}
	return receipt.EventID
}

// A service accepts events while its witness hangs. Once the witness recovers, its cosignatures are shown, also after a
// restart without it.
func TestWitnessHangs(t *testing.T) {
	t.Parallel()
	x := witnesstest.New(t, "x.example")
	release, entered := make(chan struct{}), make(chan struct{}, 1)
	x.AnswerWith(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case entered <- struct{}{}:
		default:
		}
		select {
		case <-release:
		case <-r.Context().Done(): // given up by the service, which may retry
		}
		panic(http.ErrAbortHandler)
	})
	set := witnessedBy(t, x.PolicyLine("x")+"quorum x\n")
	data := t.TempDir()
	c := testSettings(data)
	set(&c)
	witnessed, err := startServer(t.Context(), c, config.Logging{LogLevel: "warn"}.NewLogger(t.Output()))
	if err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceValue(func() error { return witnessed.stopServer(context.Background()) })
	t.Cleanup(func() { _ = stop() })
	a := foundHere(t, witnessed, "acme")
	sendOne(t, a)
	<-entered
	for range 200 {
		sendOne(t, a)
	}
	if _, most := x.CountCalls(); most != 1 {
		t.Errorf("the witness was asked %d times at once about one log", most)
	}
	key, err := tlog.ParseVerifierKey(a.org.LogKey)
	if err != nil {
		t.Fatal(err)
	}
	x.AddLog(key)
	x.AnswerWith(nil)
	close(release)
	cosigned := witnessed.mainURL() + "/v1/public/orgs/acme/transparency/checkpoint?cosigned=1"
	policy, err := trust.Parse([]byte(getText(t, witnessed.mainURL()+"/v1/public/orgs/acme/transparency/policy")))
	if err != nil {
		t.Fatal(err)
	}
	var before string
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		before = getText(t, cosigned)
		if o, err := policy.Open([]byte(before)); err == nil && o.Checkpoint.Size == 201 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("not cosigned: %s", before)
		}
	}
	x.AnswerWith(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusServiceUnavailable) })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	again := startHere(t, func(c *config.Serve) { set(c); c.Data = data })
	if after := getText(t, again.mainURL()+"/v1/public/orgs/acme/transparency/checkpoint?cosigned=1"); after != before {
		t.Errorf("after a restart: got %s, want %s", after, before)
	}
}

func TestWitnessPolicyFileIsRejected(t *testing.T) {
	x := witnesstest.New(t, "x.example")
	key := x.Signer.Key().String()
	for name, row := range map[string]struct{ policy, says string }{
		"no policy":         {"hello\n", "line 1"},
		"no quorum":         {x.PolicyLine("x"), "no quorum"},
		"no URL":            {"witness x " + key + "\nquorum x\n", "x: "},
		"private address":   {"witness x " + key + " https://10.0.0.1/\nquorum x\n", "x: "},
		"a log":             {"log log.example+00000000+x\nquorum none\n", "line 1"},
		"threshold of zero": {x.PolicyLine("x") + "group g 0 x\nquorum g\n", "line 2"},
	} {
		c := testSettings(t.TempDir())
		witnessedBy(t, row.policy)(&c)
		s, err := startServer(t.Context(), c, config.Logging{LogLevel: "error"}.NewLogger(t.Output()))
		if err == nil {
			t.Fatalf("%s: it starts: %v", name, s.stopServer(t.Context()))
		}
		if !strings.Contains(err.Error(), "--witness-policy-file") || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
