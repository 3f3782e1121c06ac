package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
	"github.com/agentledger/agentledger/tlog"
)

// until waits for something that a service does automatically.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never happened: %s", what)
		}
	}
}

// runOn starts a service on a data directory and returns a function that stops it.
func runOn(t *testing.T, data string, set func(*config.Serve)) (*server, func()) {
	t.Helper()
	c := testSettings(data)
	set(&c)
	s, err := startServer(t.Context(), c, config.Logging{LogLevel: "warn"}.NewLogger(t.Output()))
	if err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		if err := s.stopServer(context.Background()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return s, stop
}

// mustRun runs a command of the program that must succeed.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := runProgram(t.Context(), args, &out, &errs); code != 0 {
		t.Fatalf("%v: status %d: %s", args, code, errs.String())
	}
	return out.String()
}

// The witness contradicts red's log, which continues as a successor. If the witness learns of the new key before the
// server starts, it is never asked about a log that it does not know; if later, the operator has it asked at once.
func TestSuccessorIsCosigned(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]bool{"told before the start": true, "told after it": false} {
		t.Run(name, func(t *testing.T) {
			x := witnesstest.New(t, "x.example")
			set, data := witnessedBy(t, x.PolicyLine("x")+"quorum x\n"), t.TempDir()
			s, stop := runOn(t, data, set)
			red, blue := foundHere(t, s, "red"), foundHere(t, s, "blue")
			for _, w := range []*worker{red, blue} {
				know(t, x, w.org.LogKey)
				sendOne(t, w)
				until(t, "cosigned", func() bool { return x.LatestCheckpoint(w.org.Origin).Size == 1 })
			}
			x.SetLatest(tlog.Checkpoint{Origin: red.org.Origin, Size: 100, Root: tlog.LeafHash(nil)})
			body, err := red.signer.SignEvent(client.Event{TraceID: "t", ActorPrincipal: "p", ActionKind: "tool_call", Decision: id.Allow})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = red.client.Send(t.Context(), body) // it may still be accepted
			until(t, "frozen", func() bool {
				return strings.Contains(getText(t, s.mainURL()+"/v1/public/orgs/red/transparency/head"), `"fault":"frozen"`)
			})
			stop()

			out := mustRun(t, "succeed", "--data", data, "--organization", "red", "--reason", "the witness knows more")
			_, key, ok := strings.Cut(out, "key: ")
			if !ok {
				t.Fatalf("got %s", out)
			}
			if key, _, _ = strings.Cut(key, "\n"); told {
				know(t, x, key)
			}
			before, _ := x.CountCalls()
			s, _ = runOn(t, data, set)
			successor := red.org.Origin.Next()
			if !told {
				until(t, "it was asked about the successor", func() bool { calls, _ := x.CountCalls(); return calls > before })
				know(t, x, key)
				if got := mustRun(t, "ask-witnesses", "--data", data, "--server", s.identityURL(), "--slug", "red"); got != "red: asking x\n" {
					t.Errorf("got %q", got)
				}
			}
			until(t, "the successor is cosigned", func() bool { return x.LatestCheckpoint(successor).Size == 1 })
			if calls, _ := x.CountCalls(); told && calls != before+1 {
				t.Errorf("%d calls for the first cosignature of the successor", calls-before)
			}
			if blue, err := newWorker(s.mainURL(), blue.org, client.Retry{Attempts: 1}); err != nil {
				t.Error(err)
			} else {
				sendOne(t, blue)
			}
			until(t, "blue is cosigned", func() bool { return x.LatestCheckpoint(blue.org.Origin).Size == 2 })
		})
	}
}

// know configures the key of a log at a witness.
func know(t *testing.T, x *witnesstest.Witness, vkey string) {
	t.Helper()
	key, err := tlog.ParseVerifierKey(vkey)
	if err != nil {
		t.Fatal(err)
	}
	x.AddLog(key)
}
