package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/secret"
	"github.com/agentledger/agentledger/log"
)

// keySet is the master keys that the settings name.
type keySet struct {
	newest seal.Key
	found  bool // newest is there
	older  []seal.Key
}

// readMasterKeys reads the keys that private keys are sealed under. It generates none.
func readMasterKeys(c config.Store) (keys keySet, err error) {
	if text := secret.Getenv(config.MasterKeyVariable); text != "" {
		keys.newest, err = seal.KeyFromSecret(text)
	} else {
		keys.newest, err = seal.LoadKey(c.MasterKeyPath())
	}
	switch {
	case err == nil:
		keys.found = true
	case !errors.Is(err, fs.ErrNotExist):
		return keySet{}, fmt.Errorf("master key: %w (--master-key-file or %s)", err, config.MasterKeyVariable)
	}
	for _, file := range c.OlderMasterKeyFile {
		key, err := seal.LoadKey(file)
		if err != nil {
			return keySet{}, fmt.Errorf("older master key: %w (--older-master-key-file)", err)
		}
		keys.older = append(keys.older, key)
	}
	return keys, nil
}

// fingerprints names all keys, including for an empty set.
func (k keySet) fingerprints() ([]string, error) {
	if !k.found && len(k.older) == 0 {
		return []string{}, nil
	}
	all := k
	if !k.found {
		all.newest, all.older = k.older[0], k.older[1:]
	}
	keyring, err := all.buildKeyring()
	if err != nil {
		return nil, err
	}
	return keyring.Fingerprints(), nil
}

func (k keySet) buildKeyring() (*seal.Keyring, error) {
	keyring, err := seal.NewKeyring(k.newest, k.older...)
	if err != nil {
		return nil, fmt.Errorf("master key: %w", err)
	}
	return keyring, nil
}

// readingKeyring returns a keyring that opens sealed keys, for a command that seals none.
func (k keySet) readingKeyring(c config.Store) (*seal.Keyring, error) {
	if !k.found {
		if len(k.older) == 0 {
			return nil, fmt.Errorf("there is no master key at %s: restore the key", c.MasterKeyPath())
		}
		k.newest, k.older = k.older[0], k.older[1:]
	}
	return k.buildKeyring()
}

// ReadKeyring returns a keyring of the master keys that the settings name, for a command that seals nothing. It generates
// no key.
func ReadKeyring(c config.Store) (*seal.Keyring, error) {
	keys, err := readMasterKeys(c)
	if err != nil {
		return nil, err
	}
	return keys.readingKeyring(c)
}

// RequireMasterKey returns an error if a new master key would be generated, because imported keys are sealed under the
// master key of the service that they come from.
func RequireMasterKey(s config.Store) error {
	if secret.Getenv(config.MasterKeyVariable) != "" || len(s.OlderMasterKeyFile) > 0 {
		return nil
	}
	if _, err := os.Stat(s.MasterKeyPath()); err != nil {
		return fmt.Errorf("the master key of the exporting service is required: %w", err)
	}
	return nil
}

// CheckMasterKey returns an error if the master key opens no ledger's keys: new keys would be sealed under a different key
// than the existing ones, and every ledger would look damaged. A ledger with another fault proves nothing about the master
// key.
func (s *Store) CheckMasterKey(ctx context.Context) error {
	reader := log.NewReader(log.Options{Store: s.Engine, Keyring: s.Keyring})
	var unknown error
	for t, err := range s.Engine.Tenants(ctx) {
		if err != nil {
			return fmt.Errorf("list ledgers: %w", err)
		}
		if _, err = reader.Open(ctx, t); !errors.Is(err, seal.ErrUnknownKey) {
			return nil
		}
		unknown = fmt.Errorf("master key: it does not belong to the ledgers of this store: %w", err)
	}
	return unknown
}
