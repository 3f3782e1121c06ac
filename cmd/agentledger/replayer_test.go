package main

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// replayer is an organization whose agent replays the recording with aps.
type replayer struct {
	t      testing.TB
	org    foundedOrganization
	dir    string // of its key and its bundles
	sample []*event.Envelope
}

func newReplayer(t testing.TB, org foundedOrganization) *replayer {
	t.Helper()
	r := &replayer{t: t, org: org, dir: t.TempDir()}
	if err := os.WriteFile(r.keyFile(), []byte(org.Agent.PrivateB64), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *replayer) keyFile() string { return filepath.Join(r.dir, "agent.key") }

func (r *replayer) bundleFile(e id.Event) string { return filepath.Join(r.dir, string(e)+".json") }

// aps runs aps as the organization's agent.
func (r *replayer) aps(p *process, args ...string) (output string, exit int) {
	r.t.Helper()
	return commandWith(r.t, []string{
		"APS_URL=" + p.main, "APS_TOKEN=" + r.org.IngestKey.Secret, "APS_ORG=" + r.org.OrganizationID.String(),
		"APS_AGENT=" + string(r.org.Agent.AgentID), "APS_KEY_ID=" + string(r.org.Agent.KeyID), "APS_KEY_FILE=" + r.keyFile(),
	}, "aps", args...)
}

// sampleSize is the number of bundles of each organization that are verified, or one more.
const sampleSize = 20

// fetchSample fetches bundles of events from the whole recording. A dry run returns what the replay sent.
func (r *replayer) fetchSample(p *process) {
	r.t.Helper()
	out, exit := r.aps(p, "replay", "--dry-run", *traces)
	envelopes := strings.Split(strings.TrimSpace(out), "\n")
	if exit != 0 {
		r.t.Fatalf("dry run: exit %d\n%s", exit, out)
	}
	public := r.public(p)
	step := max(1, len(envelopes)/sampleSize)
	for i := 0; i < len(envelopes); i += step {
		e, err := event.Parse([]byte(envelopes[i]), event.Options{})
		if err != nil {
			r.t.Fatal(err)
		}
		raw, err := public.FetchBundle(r.t.Context(), r.org.Slug, e.EventID)
		if err == nil {
			err = os.WriteFile(r.bundleFile(e.EventID), raw, 0o600)
		}
		if err != nil {
			r.t.Fatal(err)
		}
		r.sample = append(r.sample, e)
	}
}

func (r *replayer) public(p *process) *client.Client {
	r.t.Helper()
	c, err := client.New(client.Config{BaseURL: p.main})
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// checkSample verifies the bundles with the pinned key, offline. Events of the denied tool state the denial, and the
// events of a trace are in order.
func (r *replayer) checkSample(denied id.Tool) {
	r.t.Helper()
	last := map[id.Trace]uint64{}
	for _, e := range r.sample {
		file := r.bundleFile(e.EventID)
		if out, exit := r.verify(file, r.org.LogKey); exit != 0 {
			r.t.Errorf("%s: exit %d\n%s", file, exit, out)
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			r.t.Fatal(err)
		}
		b, err := verify.ParseBundle(raw)
		if err != nil {
			r.t.Fatal(err)
		}
		want := `"effective":"` + e.Decision.String() + `"`
		if e.Tool != "" && e.Tool == denied {
			want = `"effective":"deny"`
		}
		if b.Record == nil || !strings.Contains(*b.Record, want) {
			r.t.Errorf("%s: its record lacks %s", file, want)
		}
		if b.SequenceNum <= last[e.TraceID] {
			r.t.Errorf("%s: #%d after #%d of the same trace", file, b.SequenceNum, last[e.TraceID])
		}
		last[e.TraceID] = b.SequenceNum
	}
	r.checkForged(r.sample[len(r.sample)/2].EventID)
}

func (r *replayer) verify(file, key string) (output string, exit int) {
	r.t.Helper()
	return command(r.t, "aps", "verify", file, "--key", key)
}

// checkForged checks that changes of a bundle are detected.
func (r *replayer) checkForged(name id.Event) {
	r.t.Helper()
	raw, err := os.ReadFile(r.bundleFile(name))
	if err != nil {
		r.t.Fatal(err)
	}
	for mutation, replace := range map[string][2]string{
		"another decision": {`\"declared\":\"allow\"`, `\"declared\":\"deny\"`},
		"another number":   {`\"seq\":`, `\"seq\":1`},
		"another proof":    {`"hashes":["`, `"hashes":["` + strings.Repeat("0", 64) + `","`},
		"another signer":   {`\"signer\":\"agent\"`, `\"signer\":\"bridge\"`},
	} {
		bent := bytes.Replace(raw, []byte(replace[0]), []byte(replace[1]), 1)
		file := filepath.Join(r.dir, "bent.json")
		if err := os.WriteFile(file, bent, 0o600); err != nil {
			r.t.Fatal(err)
		}
		if out, exit := r.verify(file, r.org.LogKey); exit != 1 || bytes.Equal(bent, raw) {
			r.t.Errorf("%s: exit %d, want 1\n%s", mutation, exit, out)
		}
	}
}

// checkApart checks that an organization's events belong to no other organization, neither by key nor by name, although
// both replayed the same lines.
func (r *replayer) checkApart(p *process, other *replayer) {
	r.t.Helper()
	public := r.public(p)
	for i, e := range r.sample {
		if i < 3 {
			if out, exit := r.verify(r.bundleFile(e.EventID), other.org.LogKey); exit != 2 {
				r.t.Errorf("%s under the key of %s: exit %d\n%s", e.EventID, other.org.Slug, exit, out)
			}
		}
		if _, err := public.FetchBundle(r.t.Context(), other.org.Slug, e.EventID); !isNotFound(err) {
			r.t.Errorf("%s under the name %s: got %v, want 404", e.EventID, other.org.Slug, err)
		}
	}
}

func isNotFound(err error) bool {
	var answer *client.Error
	return errors.As(err, &answer) && answer.Status == http.StatusNotFound
}
