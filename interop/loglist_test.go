package interop

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/transparency-dev/witness/config"

	"github.com/agentledger/agentledger/internal/operate/loglist"
	"github.com/agentledger/agentledger/log"
)

// listed starts to list the logs of a service.
func (s *served) listed(t *testing.T, contact string, perDay int) *loglist.List {
	t.Helper()
	list := loglist.New(loglist.Options{Ledgers: s.ledgers, Store: s.store, Contact: contact, PerDay: perDay, Interval: time.Millisecond})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); list.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return list
}

// read fetches the list like omniwitness, with its own program, until the expected content is there.
func readList(t *testing.T, url string, until func([]config.Log) bool) []config.Log {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		logs, err := config.FetchPublicConfig(t.Context(), config.PublicFetchOpts{URL: url})
		if err == nil && until(logs) {
			return logs
		}
		if time.Now().After(end) {
			t.Fatalf("got %+v, %v", logs, err)
		}
	}
}

// omniwitness reads our list of logs: those of two organizations, a rotated key, and the
// log that succeeds a frozen one.
func TestOmniwitnessReadsTheLogList(t *testing.T) {
	const contact = "log operators <ops@log.example> | https://log.example/about#contact"
	s := serveWitnessed(t, nil)
	s.lists.list = s.listed(t, contact, 43_200)
	url := s.server.URL + "/v1/public/witness-network/logs/v0"
	logs := readList(t, url, func(logs []config.Log) bool { return len(logs) == 2 })
	for i, l := range logs {
		if l.Origin != l.Verifier.Name() || l.QPD != 43200 || l.Contact != contact || i > 0 && logs[i-1].Origin >= l.Origin {
			t.Errorf("got %+v", l)
		}
	}
	mine, other := s.state(t, s.tenant), logs[0].VKey
	if logs[1].VKey != mine.VerifierKey().String() || logs[1].Origin != string(mine.Identity().Origin) {
		t.Errorf("got %+v", logs[1])
	}
	added := s.rotate(t)
	logs = readList(t, url, func(logs []config.Log) bool { return len(logs) == 2 && logs[1].VKey == added })
	if logs[0].VKey != other || logs[1].Origin != string(mine.Identity().Origin) {
		t.Errorf("after a rotation: got %+v", logs)
	}
	must(t, s.ledgers.Freeze(t.Context(), s.tenant, "a test"))
	logs = readList(t, url, func(logs []config.Log) bool { return len(logs) == 1 })
	if logs[0].VKey != other {
		t.Errorf("one is frozen: got %+v", logs)
	}
	heir, err := s.ledgers.Succeed(t.Context(), s.state(t, s.tenant))
	must(t, err)
	logs = readList(t, url, func(logs []config.Log) bool { return len(logs) == 2 })
	if logs[0].VKey != other || logs[1].VKey != heir.VerifierKey().String() || logs[1].Origin != string(mine.Identity().Origin)+"/2" {
		t.Errorf("succeeded: got %+v", logs)
	}
}

// omniwitness rejects a list that is malformed; otherwise reading ours would prove nothing.
func TestOmniwitnessRefusesDamagedLists(t *testing.T) {
	s := serveWitnessed(t, nil)
	s.lists.list = s.listed(t, "ops", 1)
	url := s.server.URL + "/v1/public/witness-network/logs/v0"
	readList(t, url, func(logs []config.Log) bool { return len(logs) == 2 })
	answer, err := http.Get(url)
	must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	if _, err := config.ParsePublicWitnessConfig(bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"another version": {"logs/v0", "logs/v1"}, "another key hash": {"+", "+f"}, "qpd that is no number": {"qpd 1", "qpd one"},
		"another word": {"contact", "address"}, "no key": {"vkey ", "vkey"},
	} {
		if logs, err := config.ParsePublicWitnessConfig(bytes.NewReader(bytes.Replace(text, []byte(change[0]), []byte(change[1]), 1))); err == nil {
			t.Errorf("%s: got %+v", name, logs)
		}
	}
}

// rotate gives the log another key, without a notary, and returns it.
func (s *served) rotate(t *testing.T) string {
	t.Helper()
	var change *log.KeyChange
	_, err := s.ledgers.Append(t.Context(), s.tenant, func(ctx context.Context, state *log.State) (sub log.Submission, err error) {
		change, err = s.ledgers.RotateLogKey(ctx, state)
		return log.Submission{Drafts: []log.Draft{draft(state.Identity(), "rotated")}, Keys: change}, err
	})
	must(t, err)
	return change.Verifier.String()
}
