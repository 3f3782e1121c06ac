package guard

import (
	"errors"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/client"
)

// One process begins an action, and another one ends it.
func TestHalves(t *testing.T) {
	for name, c := range map[string]struct {
		output any
		failed error
		want   string
	}{
		"done":      {map[string]any{"n": 1}, nil, "result ok"},
		"failed":    {nil, errors.New("no funds"), "result error"},
		"disclosed": {Disclosed{Output: 1, Members: map[string]any{"exit_status": 0, "status": "mine"}}, nil, "result ok"},
		"both":      {Disclosed{Members: map[string]any{"exit_status": 3}}, errors.New("exit status 3"), "result error"},
	} {
		t.Run(name, func(t *testing.T) {
			o, dir := newOffice(t), t.TempDir()
			g := guarded(t, o, dir)
			permit, err := g.Begin(t.Context(), refundAction("k"))
			if err != nil || permit.EventID == "" {
				t.Fatalf("begin: got %+v, %v", permit, err)
			}
			g.Journal.Close()
			g = guarded(t, o, dir)
			if _, err := g.Begin(t.Context(), refundAction("k")); !errors.Is(err, ErrBegun) {
				t.Errorf("begun again: got %v", err)
			}
			for range 2 {
				if err := g.End(t.Context(), "k", c.output, c.failed); err != nil {
					t.Errorf("end: got %v", err)
				}
			}
			wantLedger(t, o, "intent", c.want)
			result := string(o.events[1].Payload)
			if _, shows := c.output.(Disclosed); shows != strings.Contains(result, `"exit_status":`) || strings.Contains(result, "no funds") ||
				!strings.Contains(result, `"duration_ms":`) || !o.events[1].IsResultOf(permit.EventID) {
				t.Errorf("result: got %s", result)
			}
		})
	}
}

func TestHalvesRefuse(t *testing.T) {
	o := newOffice(t)
	g := guarded(t, o, t.TempDir())
	if err := g.End(t.Context(), "k", 1, nil); !errors.Is(err, ErrNotBegun) {
		t.Errorf("never begun: got %v", err)
	}
	o.decision = "deny"
	var denied *client.DeniedError
	if _, err := g.Begin(t.Context(), refundAction("k")); !errors.As(err, &denied) {
		t.Errorf("denied: got %v", err)
	}
	if err := g.End(t.Context(), "k", 1, nil); !errors.Is(err, ErrNotBegun) {
		t.Errorf("denied, not begun: got %v", err)
	}
	wantLedger(t, o, "intent")
}

// Recover records actions that began and never ended as unknown, and nothing else.
func TestRecover(t *testing.T) {
	o := newOffice(t)
	g := guarded(t, o, t.TempDir())
	for _, key := range []string{"open", "ended"} {
		if _, err := g.Begin(t.Context(), refundAction(key)); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.End(t.Context(), "ended", 1, nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := g.Recover(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := g.End(t.Context(), "open", 1, nil); err != nil {
		t.Errorf("ended after Recover: got %v", err)
	}
	wantLedger(t, o, "intent", "intent", "result ok", "result unknown")
}
