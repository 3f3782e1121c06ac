package signerprocess

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

// mode names the variable that makes this test's program a signer program, and its misbehaviour.
const mode = "SIGNER_TEST_MODE"

func keyOf(fill byte) edkey.Holder {
	key, err := edkey.PrivateFromSeed(bytes.Repeat([]byte{fill}, edkey.SeedSize))
	if err != nil {
		panic(err)
	}
	return key.Holder()
}

func TestMain(m *testing.M) {
	if what, ok := os.LookupEnv(mode); ok {
		misbehave(what)
		return
	}
	os.Exit(m.Run())
}

// misbehave answers the question for the public key, and then does as it is told.
func misbehave(what string) {
	name, marker, _ := strings.Cut(what, ":")
	_, again := os.Stat(marker)
	if name == "other key" && again == nil {
		_ = Serve(os.Stdin, os.Stdout, "key_1", keyOf(2))
		return
	}
	first := marker != "" && again != nil
	if first {
		_ = os.WriteFile(marker, nil, 0o600)
	}
	if name == "honest" || name == "dies once" && !first {
		_ = Serve(os.Stdin, os.Stdout, "key_1", keyOf(1))
		return
	}
	in := bufio.NewReader(os.Stdin)
	line, _ := in.ReadString('\n')
	_ = Serve(strings.NewReader(line), os.Stdout, "key_1", keyOf(1))
	if name == "begins well" || name == "other key" {
		for range 2 {
			line, _ = in.ReadString('\n')
			_ = Serve(strings.NewReader(line), os.Stdout, "key_1", keyOf(1))
		}
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		switch name {
		case "dies", "dies once", "other key", "begins well":
			return
		case "hangs":
			time.Sleep(math.MaxInt64) // select {} would end a program without C code: it counts as a deadlock
		case "nonsense":
			fmt.Println("signed!")
		case "long":
			fmt.Println(strings.Repeat("x", maxAnswer+1))
		case "wrong id":
			fmt.Println(`{"id":99,"signature_b64":""}`)
		case "short":
			fmt.Println(strings.Replace(`{"id":ID,"signature_b64":"AAAA"}`, "ID", idOf(line), 1))
		case "wrong key":
			_ = Serve(strings.NewReader(line), os.Stdout, "key_1", keyOf(2))
		case "refuses":
			fmt.Println(strings.Replace(`{"id":ID,"error":"not now\u001b[2J"}`, "ID", idOf(line), 1))
		}
	}
}

func idOf(line string) string {
	line = strings.TrimPrefix(line, `{"id":`)
	number, _, _ := strings.Cut(line, ",")
	return number
}

var who = client.Identity{Organization: id.Organization{1}, Agent: "agt_1", Key: "key_1"}

func start(t *testing.T, what string) (*Holder, error) {
	t.Helper()
	t.Setenv(mode, what)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h, err := Start(Options{Args: []string{program}, Key: who.Key, Stderr: os.Stderr, Patience: time.Minute})
	if err == nil {
		t.Cleanup(func() { _ = h.Close() })
	}
	return h, err
}

// losePatience shortens the bound of the answers to come. The start itself keeps its minute, because a program takes
// seconds to start, and under the race detector to end, on a busy machine.
func (h *Holder) losePatience(bound time.Duration) {
	h.options.Patience, h.talk.patience = bound, bound
}

const unsigned = `{"action_kind":"message","organization_id":"01000000-0000-0000-0000-000000000000","agent_id":"agt_1",` +
	`"key_id":"key_1","event_id":"evt_1","trace_id":"trc_1","emitted_at":"2026-01-01T00:00:00.000Z","actor_type":"agent",` +
	`"actor_principal":"a","policy_decision":"allow","payload":{},"salt":"c2FsdHNhbHRzYWx0c2FsdA","schema_version":1}`

// A key in another process gives the same bytes as the key itself, in both forms.
func TestSameSignatures(t *testing.T) {
	h, err := start(t, "honest")
	if err != nil {
		t.Fatal(err)
	}
	away, err := client.NewKeySigner(who, h)
	if err != nil {
		t.Fatal(err)
	}
	here, err := client.NewSigner(who, bytes.Repeat([]byte{1}, edkey.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []event.Form{event.FormDigest, event.FormCanonical} {
		got, err := away.Sign([]byte(unsigned), form)
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		want, err := here.Sign([]byte(unsigned), form)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: got %s, want %s, %v", form, got, want, err)
		}
	}
	got, err := away.Proof()
	want, _ := here.Proof()
	if err != nil || got != want {
		t.Errorf("proof: got %s, %v, want %s", got, err, want)
	}
	again, err := client.NewKeySigner(who, h)
	if err != nil {
		t.Fatal(err)
	}
	secret := away.Secret("label", nil)
	if secret == here.Secret("label", nil) || secret != again.Secret("label", nil) {
		t.Error("secrets of a held key are not derived from its signature alone")
	}
}

func TestManyAtOnce(t *testing.T) {
	h, err := start(t, "honest")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			message := fmt.Appendf(nil, "APS1-KEY\n%d", i)
			got, err := h.Sign(message)
			if want, _ := keyOf(1).Sign(message); err != nil || got != want {
				t.Errorf("%d: got %x, %v, want %x", i, got, err, want)
			}
		})
	}
	all.Wait()
}

func TestBadPrograms(t *testing.T) {
	for what, want := range map[string]string{
		"dies":      "it has ended",
		"hangs":     "no answer within 1s",
		"nonsense":  "no JSON object of the protocol",
		"long":      "longer than 4096 bytes",
		"wrong id":  "its answer is to question 99, not 2",
		"short":     "must be base64 of 64 bytes",
		"wrong key": "a signature of another message or key",
		"refuses":   "it refused: not now?[2J",
	} {
		h, err := start(t, what)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if what == "hangs" {
			h.losePatience(time.Second)
		}
		if _, err := client.NewKeySigner(who, h); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", what, err, want)
		}
	}
}

// A program that ended is started again, and must hold the same key.
func TestRestart(t *testing.T) {
	h, err := start(t, "dies once:"+filepath.Join(t.TempDir(), "marker"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.NewKeySigner(who, h); err != nil {
		t.Errorf("dies once: %v", err)
	}
	h, err = start(t, "other key:"+filepath.Join(t.TempDir(), "marker"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := client.NewKeySigner(who, h)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sign([]byte(unsigned), event.FormDigest); !errors.Is(err, errOtherKey) {
		t.Errorf("other key: got %v, want %v", err, errOtherKey)
	}
}

func TestStartRefuses(t *testing.T) {
	for name, o := range map[string]Options{
		"no program":   {Args: nil},
		"not there":    {Args: []string{"/no/such/program"}},
		"says nothing": {Args: []string{"true"}},
	} {
		if _, err := Start(o); err == nil {
			t.Errorf("%s: started", name)
		}
	}
	h, err := start(t, "honest")
	if err != nil {
		t.Fatal(err)
	}
	_ = h.Close()
	if _, err := h.Sign([]byte("APS1-KEY\n")); !errors.Is(err, errClosed) {
		t.Errorf("closed: got %v", err)
	}
}

// The served key signs for agentledger alone.
func TestServeRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ question, want string }{
		"other key":      {`{"id":1,"method":"public_key","key_id":"key_2"}`, `{"id":1,"error":"this program does not hold the key key_2"}`},
		"other method":   {`{"id":2,"method":"export","key_id":"key_1"}`, `{"id":2,"error":"the method must be public_key or sign"}`},
		"other protocol": {`{"id":3,"method":"sign","key_id":"key_1","message_b64":"U1NIIHNpZ25hdHVyZQ=="}`, `{"id":3,"error":"the message is none that an agent's key signs"}`},
	} {
		var out bytes.Buffer
		if err := Serve(strings.NewReader(tc.question+"\n"), &out, "key_1", keyOf(1)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.TrimSpace(out.String()); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
	for name, line := range map[string]string{
		"no JSON": "sign\n", "cut": `{"id":1`, "too long": strings.Repeat("x", maxQuestion+1) + "\n",
	} {
		if err := Serve(strings.NewReader(line), &bytes.Buffer{}, "key_1", keyOf(1)); err == nil {
			t.Errorf("%s: served", name)
		}
	}
}

func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"id":1,"method":"sign","key_id":"key_1","message_b64":"QVBTMS1LRVkK"}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var out bytes.Buffer
		_ = Serve(bytes.NewReader(text), &out, "key_1", keyOf(1))
		if n := bytes.Count(out.Bytes(), []byte("\n")); n > bytes.Count(text, []byte("\n"))+1 {
			t.Errorf("%d answers", n)
		}
	})
}

// BenchmarkSign is the cost of a signature by another process.
func BenchmarkSign(b *testing.B) {
	b.Setenv(mode, "honest")
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	h, err := Start(Options{Args: []string{program}, Key: "key_1"})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	for b.Loop() {
		if _, err := h.Sign([]byte("APS1-KEY\n")); err != nil {
			b.Fatal(err)
		}
	}
}
