package signer

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

// mode is the environment variable that makes this test binary a signer program and selects its misbehavior.
const mode = "SIGNER_TEST_MODE"

func testKey(fill byte) edkey.Holder {
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

// misbehave answers the question for the public key and then misbehaves in the way what names.
func misbehave(what string) {
	name, marker, _ := strings.Cut(what, ":")
	_, again := os.Stat(marker)
	if name == "other key" && again == nil {
		_ = Serve(os.Stdin, os.Stdout, "key_1", testKey(2))
		return
	}
	first := marker != "" && again != nil
	if first {
		_ = os.WriteFile(marker, nil, 0o600)
	}
	if name == "honest" || name == "dies once" && !first {
		_ = Serve(os.Stdin, os.Stdout, "key_1", testKey(1))
		return
	}
	if name == "older" {
		older()
		return
	}
	in := bufio.NewReader(os.Stdin)
	line, _ := in.ReadString('\n')
	_ = Serve(strings.NewReader(line), os.Stdout, "key_1", testKey(1))
	if name == "begins well" || name == "other key" {
		for range 2 {
			line, _ = in.ReadString('\n')
			_ = Serve(strings.NewReader(line), os.Stdout, "key_1", testKey(1))
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
			time.Sleep(math.MaxInt64) // select {} would be reported as a deadlock
		case "nonsense":
			fmt.Println("signed!")
		case "long":
			fmt.Println(strings.Repeat("x", maxAnswer+1))
		case "wrong id":
			fmt.Println(`{"id":99,"signature_b64":""}`)
		case "short":
			fmt.Println(strings.Replace(`{"id":ID,"signature_b64":"AAAA"}`, "ID", questionID(line), 1))
		case "wrong key":
			_ = Serve(strings.NewReader(line), os.Stdout, "key_1", testKey(2))
		case "refuses":
			fmt.Println(strings.Replace(`{"id":ID,"error":"not now\u001b[2J"}`, "ID", questionID(line), 1))
		}
	}
}

// older is a program for the first version of the protocol: it does not know sign_event, and signs any digest or event
// text.
func older() {
	key := testKey(1)
	in := bufio.NewReaderSize(os.Stdin, maxQuestion)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var q question
		if err := json.Unmarshal(line, &q); err != nil {
			return
		}
		a := answer{ID: q.ID}
		switch q.Method {
		case "public_key":
			public := key.Public()
			a.PublicKey = base64.StdEncoding.EncodeToString(public[:])
		case "sign":
			signature, _ := key.Sign(q.Message)
			a.Signature = base64.StdEncoding.EncodeToString(signature[:])
		default:
			a.Error = "the method must be public_key or sign"
		}
		text, _ := json.Marshal(a)
		fmt.Println(string(text))
	}
}

func questionID(line string) string {
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

// setTimeout bounds the wait for the answers to come. Starting keeps its minute, because on a busy machine a program
// takes seconds to start and, under the race detector, to end.
func (h *Holder) setTimeout(bound time.Duration) {
	h.options.Patience, h.talk.patience = bound, bound
}

const unsigned = `{"action_kind":"message","organization_id":"01000000-0000-0000-0000-000000000000","agent_id":"agt_1",` +
	`"key_id":"key_1","event_id":"evt_1","trace_id":"trc_1","emitted_at":"2026-01-01T00:00:00.000Z","actor_type":"agent",` +
	`"actor_principal":"a","policy_decision":"allow","payload":{},"salt":"c2FsdHNhbHRzYWx0c2FsdA","schema_version":1}`

// A key in another process produces the same bytes as the key itself, in both forms.
func TestSameSignatures(t *testing.T) {
	for _, program := range []string{"honest", "older"} {
		t.Run(program, func(t *testing.T) { checkSameSignatures(t, program) })
	}
}

func checkSameSignatures(t *testing.T, program string) {
	h, err := start(t, program)
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
		t.Error("secrets of a held key depend on more than its signature")
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
			message := fmt.Appendf(nil, "APS1-CONSUME\napr_1\n%064x\n", i)
			got, err := h.Sign(message)
			if want, _ := testKey(1).Sign(message); err != nil || got != want {
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
			h.setTimeout(time.Second)
		}
		if _, err := client.NewKeySigner(who, h); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", what, err, want)
		}
	}
}

// A program that exited is started again, and must hold the same key.
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
		"no program": {Args: nil},
		"not there":  {Args: []string{"/no/such/program"}},
		"no output":  {Args: []string{"true"}},
	} {
		if _, err := Start(o); err == nil {
			t.Errorf("%s: got no error", name)
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

// serveOne returns the answer of Serve to one question.
func serveOne(t *testing.T, q question) answer {
	t.Helper()
	q.ID = 1
	line, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Serve(bytes.NewReader(append(line, '\n')), &out, who.Key, testKey(1)); err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := json.Unmarshal(out.Bytes(), &a); err != nil || a.ID != 1 {
		t.Fatalf("got %s, %v", &out, err)
	}
	return a
}

// The served key signs exactly what docs/guides/signer.md lists and refuses everything else.
func TestServeSigns(t *testing.T) {
	public := testKey(1).Public()
	own := base64.StdEncoding.EncodeToString(public[:])
	const organization = "01000000-0000-0000-0000-000000000000"
	digest := strings.Repeat("0a", 32)
	for name, message := range map[string]string{
		"secret":                   "APS1-SECRET\n",
		"approval's use":           "APS1-CONSUME\napr_0123\n" + digest + "\n",
		"registration":             "APS1-KEY\n" + organization + "\nagt_1\nkey_1\n" + own + "\n",
		"registration without key": "APS1-KEY\n" + organization + "\nagt_1\n\n" + own + "\n",
	} {
		a := serveOne(t, question{Method: "sign", Key: who.Key, Message: []byte(message)})
		want, _ := testKey(1).Sign([]byte(message))
		if a.Error != "" || a.Signature != base64.StdEncoding.EncodeToString(want[:]) {
			t.Errorf("%s: got %+v", name, a)
		}
	}
	for form, message := range map[string][]byte{"digest": signedBytes(t, event.FormDigest), "canonical": signedBytes(t, event.FormCanonical)} {
		a := serveOne(t, question{Method: "sign_event", Key: who.Key, Event: []byte(unsigned), Form: form})
		want, _ := testKey(1).Sign(message)
		if a.Error != "" || a.Signature != base64.StdEncoding.EncodeToString(want[:]) {
			t.Errorf("%s: got %+v", form, a)
		}
	}
}

// signedBytes returns the bytes of the test event that are signed.
func signedBytes(t *testing.T, form event.Form) []byte {
	t.Helper()
	e, err := event.SignBy([]byte(unsigned), testKey(1).Sign)
	if err != nil {
		t.Fatal(err)
	}
	if form == event.FormDigest {
		return e.Digest[:]
	}
	return e.Signed()
}

func TestServeRefuses(t *testing.T) {
	public, otherPublic := testKey(1).Public(), testKey(2).Public()
	own, other := base64.StdEncoding.EncodeToString(public[:]), base64.StdEncoding.EncodeToString(otherPublic[:])
	const organization = "01000000-0000-0000-0000-000000000000"
	digest := strings.Repeat("0a", 32)
	changed := func(old, new string) []byte {
		if !strings.Contains(unsigned, old) {
			t.Fatalf("no %s in the event", old)
		}
		return []byte(strings.Replace(unsigned, old, new, 1))
	}
	sign := func(message string) question {
		return question{Method: "sign", Key: who.Key, Message: []byte(message)}
	}
	ofEvent := func(text []byte, form string) question {
		return question{Method: "sign_event", Key: who.Key, Event: text, Form: form}
	}
	const none, another = "the message is none of the texts", "the message registers another key"
	for name, tc := range map[string]struct {
		q    question
		want string
	}{
		"other key":                       {question{Method: "public_key", Key: "key_2"}, "this program does not hold the key key_2"},
		"other method":                    {question{Method: "export", Key: who.Key}, "the method must be"},
		"digest of an event":              {sign(string(signedBytes(t, event.FormDigest))), none},
		"any 32 bytes":                    {sign(strings.Repeat("x", 32)), none},
		"text of an event":                {sign(string(signedBytes(t, event.FormCanonical))), none},
		"another JSON text":               {sign(`{"type":"transfer"}`), none},
		"nothing":                         {sign(""), none},
		"another protocol":                {sign("SSH signature"), none},
		"secret and more":                 {sign("APS1-SECRET\nx"), none},
		"secret without its line end":     {sign("APS1-SECRET"), none},
		"text before it":                  {sign("x\nAPS1-SECRET\n"), none},
		"approval without a digest":       {sign("APS1-CONSUME\napr_0123\n\n"), none},
		"approval with more":              {sign("APS1-CONSUME\napr_0123\n" + digest + "\nmore\n"), none},
		"approval with a line end inside": {sign("APS1-CONSUME\napr_\n0123\n" + digest + "\n"), none},
		"digest in upper case":            {sign("APS1-CONSUME\napr_0123\n" + strings.ToUpper(digest) + "\n"), none},
		"registration cut":                {sign("APS1-KEY\n" + organization + "\nagt_1\n"), none},
		"registration of another key":     {sign("APS1-KEY\n" + organization + "\nagt_1\nkey_1\n" + other + "\n"), another},
		"registration under another name": {sign("APS1-KEY\n" + organization + "\nagt_1\nkey_2\n" + own + "\n"), another},
		"a later version of a text":       {sign("APS2-SECRET\n"), none},
		"an envelope's digest text":       {sign("APS1\nkey_1\n" + string(signedBytes(t, event.FormCanonical))), none},
		"no event":                        {ofEvent(nil, "digest"), "not an event that can be sent"},
		"another JSON object":             {ofEvent([]byte(`{"type":"transfer"}`), "digest"), "not an event that can be sent"},
		"a member missing":                {ofEvent(changed(`"action_kind":"message",`, ``), "digest"), "not an event that can be sent"},
		"a member twice":                  {ofEvent(changed(`"payload":{}`, `"payload":{},"payload":{}`), "digest"), "not an event that can be sent"},
		"a number out of range":           {ofEvent(changed(`"payload":{}`, `"payload":{"n":1e400}`), "digest"), "not an event that can be sent"},
		"signed already":                  {ofEvent(changed(`"payload":{}`, `"payload":{},"sig_alg":"ed25519"`), "digest"), "not an event that can be sent"},
		"text after the event":            {ofEvent([]byte(unsigned+"{}"), "canonical"), "not an event that can be sent"},
		"event of another key":            {ofEvent(changed(`"key_id":"key_1"`, `"key_id":"key_2"`), "digest"), "the event is to be signed by the key key_2"},
		"no form":                         {ofEvent([]byte(unsigned), ""), "the form must be digest or canonical"},
		"another form":                    {ofEvent([]byte(unsigned), "sha512"), "the form must be digest or canonical"},
	} {
		if a := serveOne(t, tc.q); a.Signature != "" || !strings.HasPrefix(a.Error, tc.want) {
			t.Errorf("%s: got %+v, want %q", name, a, tc.want)
		}
	}
	for name, line := range map[string]string{
		"no JSON": "sign\n", "cut": `{"id":1`, "too long": strings.Repeat("x", maxQuestion+1) + "\n",
	} {
		if err := Serve(strings.NewReader(line), &bytes.Buffer{}, "key_1", testKey(1)); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// The holder does not sign a digest either, because the program could not see the event.
func TestHolderSignsNoDigest(t *testing.T) {
	h, err := start(t, "honest")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Sign(signedBytes(t, event.FormDigest)); err == nil {
		t.Error("signed a digest")
	}
	_, err = h.SignEvent([]byte(strings.Replace(unsigned, "key_1", "key_2", 1)), event.FormDigest)
	if refused := (*RefusedError)(nil); !errors.As(err, &refused) || !strings.Contains(refused.Words, "key_2") {
		t.Errorf("the error does not name the flaw of the event: %v", err)
	}
}

func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"id":1,"method":"sign_event","key_id":"key_1","form":"digest","event_b64":"` + base64.StdEncoding.EncodeToString([]byte(unsigned)) + `"}` + "\n"))
	f.Add([]byte(`{"id":1,"method":"sign","key_id":"key_1","message_b64":"QVBTMS1LRVkK"}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var out bytes.Buffer
		_ = Serve(bytes.NewReader(text), &out, "key_1", testKey(1))
		if n := bytes.Count(out.Bytes(), []byte("\n")); n > bytes.Count(text, []byte("\n"))+1 {
			t.Errorf("%d answers", n)
		}
	})
}

// BenchmarkSign measures a signature by another process.
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
		if _, err := h.SignEvent([]byte(unsigned), event.FormDigest); err != nil {
			b.Fatal(err)
		}
	}
}
