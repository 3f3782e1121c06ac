package log_test

import (
	"context"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// An idempotency key is its ingest key's. One that was stored before that was so is the
// ingest key's that its event came with, and nobody else's.
func TestIdempotencyKeysAreOfIngestKeys(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	put := func(name, ingestKey, key string, formerly bool) id.Hash {
		e := w.envelope(red, name)
		a := w.agent.Attestation(e)
		a.IngestKeyID, a.IdempotencyKey = ingestKey, key
		_, err := w.ledgers.Append(t.Context(), red, func(_ context.Context, s *log.State) (log.Submission, error) {
			d := log.NewDraft(s.Identity(), e, a)
			if formerly {
				d.IdempotencyKey = key
			}
			return log.Submission{Drafts: []log.Draft{d}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return e.Digest
	}
	first := put("first", "ik_1", "k", false)
	second := put("second", "ik_2", "k", false)
	former := put("former", "ik_1", "old", true)
	other := w.envelope(red, "other").Digest
	for name, c := range map[string]struct {
		event          id.Event
		ingestKey, key string
		digest         id.Hash
		want           bool
		kind           fault.Kind
	}{
		"the first's":                          {"first", "ik_1", "k", first, true, 0},
		"the second's":                         {"second", "ik_2", "k", second, true, 0},
		"under the other's key":                {"first", "ik_2", "k", first, false, fault.Invalid},
		"another event of the first":           {"other", "ik_1", "k", other, false, fault.Invalid},
		"another event of the second":          {"other", "ik_2", "k", other, false, fault.Invalid},
		"a third's":                            {"other", "ik_3", "k", other, false, 0},
		"one of before":                        {"former", "ik_1", "old", former, true, 0},
		"one of before, with another event":    {"other", "ik_1", "old", other, false, fault.Invalid},
		"one of before, of another ingest key": {"other", "ik_2", "old", other, false, 0},
		"the event of before, from another":    {"former", "ik_2", "old", former, true, 0},
	} {
		asked := []log.Asked{{Event: c.event, Key: c.key, IngestKey: c.ingestKey, Digest: c.digest}}
		got := w.ledgers.Replays(t.Context(), red, asked)[0]
		if got.Known != c.want && c.kind == 0 || (c.kind == 0) != (got.Err == nil) || c.kind != 0 && !fault.Is(got.Err, c.kind) {
			t.Errorf("%s: got %+v", name, got)
		}
		if got := w.ledgers.Replays(t.Context(), blue, asked)[0]; got.Known || got.Err != nil {
			t.Errorf("%s, in the other organization: got %+v", name, got)
		}
	}
	if _, err := w.append(red, "next"); err != nil {
		t.Error(err)
	}
}
