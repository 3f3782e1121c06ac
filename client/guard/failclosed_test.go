package guard

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard/internal/linelog"
)

// withoutPermission is what may come in the place of a permission, and what the error says is to do.
var withoutPermission = map[string]struct {
	status int // 0 for none
	body   string
	advice string
}{
	"no answer":           {0, ``, againLater},
	"wrong key":           {401, `{"error":"Invalid API key"}`, "Check the ingest key"},
	"no right":            {403, `{"error":"The ingest key is not for this agent"}`, "Check the ingest key"},
	"another address":     {404, `<html>`, "Check the address"},
	"not a service":       {200, `<html>`, "Check the address"},
	"a redirection":       {302, ``, "Check the address"},
	"clock ahead":         {422, `{"error":"emitted_at is too far in the future"}`, "Set the clock"},
	"clock behind":        {422, `{"error":"emitted_at is too far in the past"}`, "Set the clock"},
	"refused":             {422, `{"error":"Unknown signing key"}`, "Check the call"},
	"agent off":           {422, `{"error":"The agent is switched off","code":"agent_inactive"}`, "switch the agent on"},
	"plan":                {429, `{"error":"Monthly event limit reached","code":"plan_limit"}`, "raise its plan's limit"},
	"pace":                {429, `{"error":"later","code":"rate_limited"}`, againLater},
	"error":               {500, `{"error":"Internal error","request_id":"r1"}`, againLater},
	"bad gateway":         {502, `<html>`, againLater},
	"overloaded":          {503, `{"error":"Too many","code":"overloaded"}`, againLater},
	"the service's clock": {503, `{"error":"The service's clock is being checked","code":"clock"}`, againLater},
	"frozen":              {503, `{"error":"The organization's ledger is frozen","code":"frozen"}`, "operator of the service"},
	"unknown decision":    {201, `{"event_id":"EVENT","status":"created","sequence_num":1,"chain_valid":true,"policy_decision":"maybe"}`, "Check the address"},
	"another event":       {201, `{"event_id":"evt_other","status":"created","sequence_num":1,"chain_valid":true}`, "Check the address"},
	"no event":            {201, `{"policy_decision":"allow","status":"created"}`, "Check the address"},
	"empty":               {201, ``, "Check the address"},
	"no approval":         {201, `{"event_id":"EVENT","status":"created","sequence_num":1,"chain_valid":true,"policy_decision":"allow_with_obligation"}`, "scope approvals"},
}

// ways are the ways to run an action, with a key of the caller's and with a new one.
var ways = map[string]func(*Guard, *deed) error{
	"run": func(g *Guard, d *deed) error {
		_, err := g.Run(context.Background(), refundAction("k"), d.do)
		return err
	},
	"run, new key": func(g *Guard, d *deed) error {
		_, err := g.Run(context.Background(), refundAction(""), d.do)
		return err
	},
	"begin": func(g *Guard, d *deed) error {
		_, err := g.Begin(context.Background(), refundAction("k"))
		if err == nil {
			d.done++
		}
		return err
	},
	"request": func(g *Guard, d *deed) error {
		base := roundTrip(func(*http.Request) (*http.Response, error) {
			d.done++
			return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
		})
		answer, err := (&http.Client{Transport: &Transport{Guard: g, Base: base}}).Get("http://shop.test/")
		if err == nil {
			answer.Body.Close()
		}
		return err
	},
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// wantClosed checks that an action did not run and that the error says what to do.
func wantClosed(t *testing.T, name string, d *deed, err error, advice string) {
	t.Helper()
	var undecided *NotDecidedError
	if !errors.As(err, &undecided) || d.done != 0 || !strings.Contains(err.Error(), "did not run") || !strings.Contains(err.Error(), advice) {
		t.Errorf("%s: got %v, done %d times, want %q", name, err, d.done, advice)
	}
}

// Without a permission nothing runs, whatever the way, and the error says what to do. Once permitted, it runs.
func TestFailClosed(t *testing.T) {
	for kind, c := range withoutPermission {
		for way, act := range ways {
			o, d := newOffice(t), &deed{}
			failing := true
			o.fail = func(string, bool) bool { return failing && c.status == 0 }
			front(t, o, func(r *http.Request) (int, string) {
				if !failing || r.URL.Path != "/v1/ingest/events" {
					return 0, ""
				}
				return c.status, strings.ReplaceAll(c.body, "EVENT", r.Header.Get("Idempotency-Key"))
			})
			g := guarded(t, o, t.TempDir())
			wantClosed(t, kind+", "+way, d, act(g, d), c.advice)
			o.set(func() { failing = false })
			if err := act(g, d); err != nil || d.done != 1 {
				t.Errorf("%s, %s: permitted: got %v, done %d times", kind, way, err, d.done)
			}
		}
	}
}

// One service accepts the request and never answers, and another one does not exist.
func TestNobodyAnswers(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for name, address := range map[string]net.Addr{"silent": silent.Addr(), "closed": closed.Addr()} {
		for way, act := range ways {
			o, d := newOffice(t), &deed{}
			g := guarded(t, o, t.TempDir(), func(config *Config) {
				config.Client, err = client.New(client.Config{BaseURL: "http://" + address.String(), Token: "secret", Timeout: 50 * time.Millisecond,
					Retry: client.Retry{Attempts: 2, Sleep: atOnce}})
				if err != nil {
					t.Fatal(err)
				}
			})
			failed := act(g, d)
			wantClosed(t, name+", "+way, d, failed, againLater)
			if strings.Contains(failed.Error(), "secret") {
				t.Errorf("%s: the token is in %v", name, failed)
			}
		}
	}
}

// full is a disk with no space left.
type full struct {
	linelog.SystemFiles
	no error
}

type fullFile struct {
	linelog.File
	disk *full
}

func (f full) Create(path string) (linelog.File, error) {
	file, err := f.SystemFiles.Create(path)
	return fullFile{file, &f}, err
}

func (f fullFile) WriteAt(b []byte, at int64) (int, error) {
	n, _ := f.File.WriteAt(b[:len(b)/2], at)
	return n, &os.PathError{Op: "write", Path: "journal", Err: f.disk.no}
}

// With a full disk nothing runs, even if the service permits it.
func TestFullDisk(t *testing.T) {
	for no, advice := range map[error]string{
		syscall.ENOSPC: "Make room on the disk", syscall.EDQUOT: "Make room on the disk", syscall.EROFS: "Make room on the disk",
		syscall.EIO: "Look at the folder of the journal",
	} {
		for _, decision := range []string{"allow", "allow_with_obligation"} {
			for way, act := range ways {
				o, d := newOffice(t), &deed{}
				o.decision, o.votes = decision, []string{"approved"}
				g := guarded(t, o, t.TempDir(), func(c *Config) {
					c.Journal.Close()
					j, err := OpenJournal(t.TempDir(), JournalOptions{settle: -1, files: full{no: no}})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { j.Close() })
					c.Journal = j
				})
				wantClosed(t, no.Error()+", "+decision+", "+way, d, act(g, d), advice)
			}
		}
	}
}
