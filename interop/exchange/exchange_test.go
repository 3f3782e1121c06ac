// Package exchange lets agents of three languages sign the same events, and verifiers of three languages check them.
//
// Invariants:
//
//   - An event has the same bytes whichever client signs it, because Ed25519 and the canonical form are deterministic.
//   - A bundle has the same outcome whichever client verifies it.
package exchange

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/interop"
	"github.com/agentledger/agentledger/tlog"
)

// hostile are payloads at the edges of the canonical form. interop.Generator adds random ones.
var hostile = []string{
	`{}`,
	`{"n":[0,-0,-0.0,1,10.0,1e0,1E+2,0.1,5e-324,1.7976931348623157e308,1e21,1e-7,123456789012345680000]}`,
	`{"n":[9007199254740991,-9007199254740991,9007199254740992,4503599627370497.5]}`,
	`{"😀":1,"\ufb33":2,"\ud83d\ude00z":3,"é":4,"e\u0301":5,"\u0000":6,"":7}`,
	`{"__proto__":{"x":1},"constructor":null,"toString":false,"hasOwnProperty":[]}`,
	`{"10":1,"9":2,"1":3,"01":4,"-1":5}`,
	`{"text":"\u2028\u2029\u007f\u0080\ufffe\uffff</script>\b\f\n\r\t\"\\\/"}`,
	`{"a":` + strings.Repeat("[", 62) + strings.Repeat("]", 62) + `}`,
	`{"a":` + strings.Repeat(`{"a":`, 61) + `0` + strings.Repeat(`}`, 61) + `}`,
	`{"long":"` + strings.Repeat("𝄞", 20_000) + `"}`,
}

// agent answers lines in one language.
type agent struct {
	name   string
	answer func(t *testing.T, command string, lines []string) []string
}

func TestAgentsAgree(t *testing.T) {
	s := interop.Start(t)
	agents := []agent{goAgent(t, s), program(s, "typescript", "node", "agent.mjs"),
		program(s, "python", "../../clients/python/interpreter", "agent.py")}
	const batch = 40
	events, names := writeEvents(s, 3*batch)
	digests := make([]string, len(events))
	for turn := range agents { // each signs all; in each third another one is the first
		for third := range agents {
			a := agents[(turn+third)%len(agents)]
			begin := third * batch
			answers := a.answer(t, "send", events[begin:begin+batch])
			if len(answers) != batch {
				t.Fatalf("%s: got %d answers, want %d", a.name, len(answers), batch)
			}
			for i, got := range answers {
				digest, status, _ := strings.Cut(got, " ")
				want := "replayed"
				if turn == 0 {
					digests[begin+i], want = digest, "created"
				}
				if digest != digests[begin+i] || status != want {
					t.Errorf("%s: event %s: got %s, want %s %s", a.name, events[begin+i], got, digests[begin+i], want)
				}
			}
		}
	}
	for _, a := range agents {
		for i, got := range a.answer(t, "verify", names) {
			if got != "proved" {
				t.Errorf("%s: event %s: got %q, want proved", a.name, events[i], got)
			}
		}
	}
	if got := s.Size(t); got < len(events) {
		t.Errorf("got %d entries, want at least %d", got, len(events))
	}
}

// writeEvents returns complete events without signatures, and their ids.
func writeEvents(s *interop.Service, n int) (events, names []string) {
	payloads := append([]string(nil), hostile...)
	for g := interop.NewGenerator(2); len(payloads) < n; {
		text := `{"value":` + g.Text() + `}`
		if _, err := jcs.Canonicalize([]byte(text), jcs.MaxDepth-1); err == nil {
			payloads = append(payloads, text)
		}
	}
	for i, payload := range payloads {
		name := fmt.Sprintf("evt_exchange_%d", i)
		names = append(names, name)
		events = append(events, fmt.Sprintf(`{"schema_version":1,"organization_id":%q,"event_id":%q,"trace_id":"trc_exchange",`+
			`"agent_id":%q,"key_id":%q,"emitted_at":"2026-11-20T10:00:00.5Z","actor_type":"agent","actor_principal":%q,`+
			`"action_kind":"note","policy_decision":"allow","salt":"c2FsdHNhbHRzYWx0c2FsdA","payload":%s}`,
			s.Organization, name, s.Agent.AgentID, s.Agent.KeyID, s.Agent.AgentID, payload))
	}
	return events, names
}

// program is an agent in another process.
func program(s *interop.Service, name string, command ...string) agent {
	return agent{name, func(t *testing.T, request string, lines []string) []string {
		t.Helper()
		p := exec.CommandContext(t.Context(), command[0], append(command[1:], request)...)
		p.Env = append(s.Environment(), "LOG_SLUG="+string(s.Slug), "LOG_KEY="+s.LogKey)
		p.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
		var wrong bytes.Buffer
		p.Stderr = &wrong
		out, err := p.Output()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, wrong.String())
		}
		return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	}}
}

// goAgent is the agent of the Go client.
func goAgent(t *testing.T, s *interop.Service) agent {
	t.Helper()
	c, err := client.New(client.Config{BaseURL: "http://" + s.Address, Token: s.IngestKey.Secret})
	must(t, err)
	signer, err := client.ParseSigner(client.Identity{Organization: s.Organization, Agent: s.Agent.AgentID, Key: s.Agent.KeyID}, s.Agent.Private)
	must(t, err)
	key, err := tlog.ParseVerifierKey(s.LogKey)
	must(t, err)
	log := c.Log(s.Slug, key)
	answer := map[string]func(t *testing.T, line string) string{
		"send": func(t *testing.T, line string) string {
			signed, err := signer.Sign([]byte(line), event.FormDigest)
			must(t, err)
			result, err := c.Send(t.Context(), signed)
			must(t, err)
			sum := sha256.Sum256(signed)
			return hex.EncodeToString(sum[:]) + " " + string(result.Status)
		},
		"verify": func(t *testing.T, line string) string {
			_, report, err := log.Bundle(t.Context(), id.Event(line))
			must(t, err)
			if !report.OK || report.EnvelopeOK == nil || !*report.EnvelopeOK {
				text, _ := json.Marshal(report)
				return string(text)
			}
			return "proved"
		},
	}
	return agent{"go", func(t *testing.T, command string, lines []string) []string {
		t.Helper()
		answers := make([]string, len(lines))
		for i, line := range lines {
			answers[i] = answer[command](t, line)
		}
		return answers
	}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
