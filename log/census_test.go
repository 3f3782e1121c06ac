package log_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// slugs are the slugs of the tests' organizations.
func slugs(t id.Tenant, _ []byte) (id.Slug, error) {
	return map[id.Tenant]id.Slug{red: "red", blue: "blue", 30: "green"}[t], nil
}

// An organization that was founded after the store's backup is missing in the store. The anchors name it, and its
// slug stays taken.
func TestRollbackToBeforeAnOrganization(t *testing.T) {
	const green id.Tenant = 30
	model := storagetest.NewModel()
	w := newWorld(t, model)
	w.mustAppend(red, "a")
	w.mustAppend(blue, "a")
	if err := w.ledgers.Census(t.Context(), "organization", slugs); err != nil {
		t.Fatal(err)
	}
	backup := model.Reopen()
	genesis := ledgertest.Genesis(green)
	genesis.Slug = "green"
	if _, err := w.ledgers.Create(t.Context(), green, genesis); err != nil {
		t.Fatal(err)
	}
	w.ledgers.Close()
	w.store = backup
	var told bytes.Buffer
	registry := prometheus.NewRegistry()
	w.open(log.Options{Metrics: registry, Logger: slog.New(slog.NewTextHandler(&told, nil))})
	if err := w.ledgers.Census(t.Context(), "organization", slugs); err != nil {
		t.Fatal(err)
	}
	if got := gauge(t, registry, "agentledger_missing_ledgers"); got != 1 {
		t.Errorf("got %v missing ledgers, want 1", got)
	}
	if line := told.String(); !strings.Contains(line, "origin="+string(genesis.Origin)) || !strings.Contains(line, "slug=green") || strings.Count(line, "is missing") != 1 {
		t.Errorf("told: %s", line)
	}
	for slug, want := range map[id.Slug]bool{"red": true, "blue": true, "green": true, "other": false} {
		if got := w.ledgers.SlugTaken(slug, "log.example/o/another"); got != want {
			t.Errorf("%s is taken: got %v, want %v", slug, got, want)
		}
	}
	if w.ledgers.SlugTaken("green", genesis.Origin) || w.ledgers.SlugTaken("green", genesis.Origin.Next()) {
		t.Error("the slug is taken for the organization that has it")
	}
	taken := ledgertest.Genesis(31)
	taken.Slug = "green"
	if _, err := w.ledgers.Create(t.Context(), 31, taken); !fault.Is(err, fault.Conflict) {
		t.Errorf("another organization under its slug: got %v", err)
	}
	if _, err := w.ledgers.Create(t.Context(), green, ledgertest.Genesis(green)); !fault.Is(err, fault.Conflict) {
		t.Errorf("its origin again: got %v", err)
	}
	w.mustAppend(red, "b")
	w.mustAppend(blue, "b")
	w.ledgers.Close()
	findings := w.findings()
	if len(findings) != 1 || findings[0].Origin != genesis.Origin || !strings.Contains(findings[0].Problem, "green") {
		t.Errorf("fsck: got %v", findings)
	}
}

// While notes of slugs may be lost, no organization can be founded. The slugs of the organizations in the store are
// written again, which ends the doubt unless the store lacks a ledger whose slug is lost.
func TestDamagedNames(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(b []byte) []byte // nil: the journal is removed
		lost  bool                  // the slug of the organization that is not in the store
	}{
		"removed":                    {nil, true},
		"a flipped bit in a slug":    {func(b []byte) []byte { b[bytes.Index(b, []byte("green"))] ^= 1; return b }, true},
		"a flipped bit in a header":  {func(b []byte) []byte { b[1] ^= 1; return b }, false},
		"a note between the others":  {func(b []byte) []byte { return append([]byte("text\n"), b...) }, false},
		"zeros over the first bytes": {func(b []byte) []byte { return append(make([]byte, 99), b[99:]...) }, false},
	} {
		for _, rolledBack := range []bool{false, true} {
			model := storagetest.NewModel()
			w := newWorld(t, model)
			if err := w.ledgers.Census(t.Context(), "organization", slugs); err != nil {
				t.Fatal(err)
			}
			backup := model.Reopen()
			genesis := ledgertest.Genesis(30)
			genesis.Slug = "green"
			if _, err := w.ledgers.Create(t.Context(), 30, genesis); err != nil {
				t.Fatal(err)
			}
			w.ledgers.Close()
			if rolledBack {
				w.store = backup
			}
			journal := filepath.Join(w.anchors, "names.journal")
			b, err := os.ReadFile(journal)
			if err == nil && tc.spoil != nil {
				err = os.WriteFile(journal, tc.spoil(b), 0o600)
			} else if err == nil {
				err = os.Remove(journal)
			}
			if err != nil {
				t.Fatal(err)
			}
			other := ledgertest.Genesis(31)
			other.Slug = "other"
			for range 2 { // a restart does not end the doubt
				var told bytes.Buffer
				w.open(log.Options{Logger: slog.New(slog.NewTextHandler(&told, nil))})
				if _, err := w.ledgers.Create(t.Context(), 31, other); !fault.Is(err, fault.Unavailable) || strings.Contains(fault.Of(err).Message, "names.journal") ||
					!strings.Contains(err.Error(), "names.journal") {
					t.Errorf("%s: before the census: got %v", name, err)
				}
				if !strings.Contains(told.String(), "names.journal is") {
					t.Errorf("%s: the log does not name the file: %s", name, &told)
				}
				w.ledgers.Close()
			}
			w.open(log.Options{})
			if err := w.ledgers.Census(t.Context(), "organization", slugs); err != nil {
				t.Fatal(err)
			}
			_, err = w.ledgers.Create(t.Context(), 31, other)
			if refused := fault.Is(err, fault.Unavailable); refused != (rolledBack && tc.lost) || !refused && err != nil {
				t.Errorf("%s, rolled back %v: after the census: got %v", name, rolledBack, err)
			}
			if taken := w.ledgers.SlugTaken("green", "log.example/o/another"); taken == (rolledBack && tc.lost) {
				t.Errorf("%s, rolled back %v: green is taken: %v", name, rolledBack, taken)
			}
			w.ledgers.Close()
		}
	}
}

// findings returns the findings of fsck with read-only anchors.
func (w *world) findings() (findings []audit.Finding) {
	w.t.Helper()
	anchors, err := anchor.OpenReadOnly(w.anchors)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = audit.Fsck(w.t.Context(), w.store, w.keyring, anchors, func(f audit.Finding) { findings = append(findings, f) })
	if err := errors.Join(err, anchors.Close()); err != nil {
		w.t.Fatal(err)
	}
	return findings
}

// A failed founding does not keep the slug taken, and names are restored with the folder.
func TestSlugOfAFoundingThatFailed(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	failed := ledgertest.Genesis(30)
	failed.Slug = "green"
	if _, err := w.ledgers.Create(t.Context(), red, failed); err == nil {
		t.Fatal("two ledgers have one handle")
	}
	if w.ledgers.SlugTaken("green", "log.example/o/another") {
		t.Error("a founding that failed has taken the slug")
	}
	genesis := ledgertest.Genesis(31)
	genesis.Slug = "green"
	if _, err := w.ledgers.Create(t.Context(), 31, genesis); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(w.anchors); err != nil {
		t.Fatal(err)
	}
	late := ledgertest.Genesis(32)
	late.Slug = "late"
	if _, err := w.ledgers.Create(t.Context(), 32, late); err == nil && w.ledgers.AnchorsLost() == 0 {
		t.Error("founded without a name that lasts")
	}
	w.reopen(model)
	if !w.ledgers.SlugTaken("green", failed.Origin) || w.ledgers.SlugTaken("green", genesis.Origin) {
		t.Error("the slug is not that of the organization that was founded")
	}
}
