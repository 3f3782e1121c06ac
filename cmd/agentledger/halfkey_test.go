package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/operate/rekey"
)

// foundIn creates organizations in a store without a running server.
func foundIn(t *testing.T, c config.Serve, slugs ...id.Slug) {
	t.Helper()
	s, err := openService(t.Context(), c, logOnlyObservation(slog.New(slog.DiscardHandler)), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, slug := range slugs {
		if _, err := s.founder.CreateOrganization(t.Context(), provision.Request{Name: "n", Slug: slug, AdminEmail: "ops@" + string(slug) + ".example"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// opened opens the service and closes it again.
func opened(t *testing.T, c config.Serve) error {
	t.Helper()
	s, err := openService(t.Context(), c, logOnlyObservation(slog.New(slog.DiscardHandler)), nil)
	if err != nil {
		return err
	}
	return s.Close()
}

// Between the first start with a new master key and the end of resealing, some keys are sealed under each of the two: a
// start with only one of them is rejected.
func TestHalfChangedMasterKey(t *testing.T) {
	c := testSettings(t.TempDir())
	foundIn(t, c, "red", "blue")
	key := filepath.Join(c.Data, "master.key")
	if err := os.Rename(key, key+".old"); err != nil {
		t.Fatal(err)
	}
	both := c
	both.OlderMasterKeyFile = []string{key + ".old"}
	foundIn(t, both, "green") // under the new key; the process ends before the first key is resealed
	onlyOld := c
	onlyOld.MasterKeyFile = key + ".old"
	for name, one := range map[string]config.Serve{"the new key alone": c, "the old key alone": onlyOld} {
		if err := opened(t, one); err == nil || !strings.Contains(err.Error(), "--older-master-key-file") {
			t.Errorf("%s: got %v, want an error that names the missing key", name, err)
		}
	}

	s, err := openService(t.Context(), both, logOnlyObservation(slog.New(slog.DiscardHandler)), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := rekey.Rekeyer{Store: s.store.Engine, Ledgers: s.ledgers, Keyring: s.store.Keyring, Sealed: rekey.SealedRecords()}
	if _, err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := opened(t, c); err != nil {
		t.Errorf("the new key alone, at the end: %v", err)
	}
	if err := opened(t, onlyOld); err == nil || !strings.Contains(err.Error(), "it does not belong to the ledgers") {
		t.Errorf("the old key alone, at the end: got %v", err)
	}
}
