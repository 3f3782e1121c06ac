package ingest_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/log"
)

// portion is the number of lines of a batch that are appended together.
const portion = 256

// overlapping delays reads of a key until an append has ended.
type overlapping struct {
	ingest.Agents
	ingest.Ledgers
	key   id.Key
	once  sync.Once
	ended chan struct{}
}

func (o *overlapping) SigningKey(ctx context.Context, s *log.State, a id.Agent, k id.Key) (agent.Key, error) {
	if k == o.key {
		<-o.ended
	}
	return o.Agents.SigningKey(ctx, s, a, k)
}

func (o *overlapping) AppendTo(ctx context.Context, s *log.State, prepares []log.Prepare) []log.Outcome {
	defer o.once.Do(func() { close(o.ended) })
	return o.Ledgers.AppendTo(ctx, s, prepares)
}

func (w *world) lines(of *member, n int) []string {
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = w.envelope(of, fmt.Sprintf("evt-%04d", i), fields{"trace_id": "trace", "tool_name": "acme.allow"})
	}
	return bodies
}

// The first lines of a long batch are committed before the last ones are read.
func TestBatchLandsWhileItIsRead(t *testing.T) {
	o := &overlapping{key: "late", ended: make(chan struct{})}
	w := newWorld(t, func(options *ingest.Options) {
		o.Agents, o.Ledgers = options.Agents, options.Ledgers
		options.Agents, options.Ledgers = o, o
	})
	bodies := w.lines(&w.red, portion+1)
	bodies[portion] = w.envelope(&w.red, "last", fields{"key_id": "late"})
	a := w.batch(&w.red, ndjson(bodies...))
	if got := a.statuses(); got[http.StatusCreated] != portion || status(a.lines[portion]) != http.StatusUnprocessableEntity {
		t.Errorf("got %v, last %s", got, a.lines[portion])
	}
	w.checkPlaces(t)
}

// An event that is repeated in a later portion is judged separately, whether the first one was committed or rejected.
func TestBatchRepeatsAcrossPortions(t *testing.T) {
	w := newWorld(t)
	bodies := w.lines(&w.red, 2*portion+10)
	const first, again, third = 3, portion + 5, 2*portion + 7
	bodies[again], bodies[third] = bodies[first], bodies[first]
	bodies[again+1] = w.envelope(&w.red, "evt-0001", fields{"trace_id": "another-event"})
	a := w.batch(&w.red, ndjson(bodies...))
	for i, want := range map[int]int{first: 201, again: 200, third: 200, again + 1: 422} {
		if got := status(a.lines[i]); got != want {
			t.Errorf("line %d: got %s, want %d", i, a.lines[i], want)
		}
	}
	if got, want := w.sizes(), [2]id.Index{id.Index(len(bodies) - 3)}; got != want {
		t.Errorf("got sizes %v, want %v", got, want)
	}
	w.checkPlaces(t)
	w.Audit(t, w.red.tenant)
}

// If a later portion fails, the answer is lost. Committed lines are replays when the batch is retried.
func TestBatchFailsBehindItsFirstPortion(t *testing.T) {
	w := newWorld(t, func(o *ingest.Options) { o.Agents = explosive{o.Agents} })
	good := w.lines(&w.red, portion+40)
	bad := append(good[:len(good)-1:len(good)-1], w.envelope(&w.red, "bad", fields{"key_id": "boom"}))
	if a := w.batch(&w.red, ndjson(bad...)); a.Code != http.StatusInternalServerError {
		t.Fatalf("got %d %s", a.Code, a.Body)
	}
	landed := w.sizes()[0]
	if landed != 0 && landed != portion {
		t.Errorf("got size %d, want a whole portion or none", landed)
	}
	got := w.batch(&w.red, ndjson(good...)).statuses()
	if got[http.StatusOK] != int(landed) || got[http.StatusCreated] != len(good)-int(landed) {
		t.Errorf("%d had landed, got %v", landed, got)
	}
	w.Audit(t, w.red.tenant)
}
