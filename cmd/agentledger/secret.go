package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/internal/seal"
)

// The environment variables that hold secrets themselves.
const (
	masterKeyVariable      = "AGENTLEDGER_MASTER_KEY"
	platformSecretVariable = "AGENTLEDGER_PLATFORM_SECRET"
)

// keySet is the master keys that the settings name.
type keySet struct {
	newest seal.Key
	found  bool // newest is there
	older  []seal.Key
}

// readMasterKeys reads the keys that private keys are sealed under. It makes none.
func readMasterKeys(c config.Store) (keys keySet, err error) {
	if secret := os.Getenv(masterKeyVariable); secret != "" {
		keys.newest, err = seal.KeyFromSecret(secret)
	} else {
		keys.newest, err = seal.LoadKey(c.MasterKeyPath())
	}
	switch {
	case err == nil:
		keys.found = true
	case !errors.Is(err, fs.ErrNotExist):
		return keySet{}, fmt.Errorf("master key: %w", err)
	}
	for _, file := range c.OlderMasterKeyFile {
		key, err := seal.LoadKey(file)
		if err != nil {
			return keySet{}, fmt.Errorf("older master key: %w", err)
		}
		keys.older = append(keys.older, key)
	}
	return keys, nil
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
			return nil, fmt.Errorf("there is no master key at %s: bring the key back", c.MasterKeyPath())
		}
		k.newest, k.older = k.older[0], k.older[1:]
	}
	return k.buildKeyring()
}

// requireMasterKey refuses to go on where a new master key would be made, because
// imported keys are sealed under the master key of the service that they come from.
func requireMasterKey(s config.Store) error {
	if os.Getenv(masterKeyVariable) != "" || len(s.OlderMasterKeyFile) > 0 {
		return nil
	}
	if _, err := os.Stat(s.MasterKeyPath()); err != nil {
		return fmt.Errorf("the master key of the service that the export comes from is needed: %w", err)
	}
	return nil
}

// minSecret is the length of the shortest platform secret.
const minSecret = 16

// loadPlatformSecret returns the platform secret and, when it was made just now, the file that it is in.
func loadPlatformSecret(c config.Serve) (secret, madeFile string, err error) {
	if secret = os.Getenv(platformSecretVariable); secret == "" {
		secret, madeFile, err = readOrMakeSecret(c.PlatformSecretPath())
	}
	if err == nil && len(secret) < minSecret {
		err = fmt.Errorf("shorter than %d characters", minSecret)
	}
	if err != nil {
		return "", "", fmt.Errorf("platform secret: %w", err)
	}
	return secret, madeFile, nil
}

// servedPlatformSecret is platformSecret, or knownPlatformSecret where nothing is written.
func servedPlatformSecret(c config.Serve) (secret, madeFile string, err error) {
	if !c.ReadOnly {
		return loadPlatformSecret(c)
	}
	secret, err = knownPlatformSecret(c)
	return secret, "", err
}

// knownPlatformSecret returns the platform secret of a server that runs; it makes none.
func knownPlatformSecret(c config.Serve) (string, error) {
	if os.Getenv(platformSecretVariable) == "" {
		if _, err := os.Stat(c.PlatformSecretPath()); err != nil {
			return "", fmt.Errorf("platform secret: %w", err)
		}
	}
	secret, _, err := loadPlatformSecret(c)
	return secret, err
}

// readOrMakeSecret reads a file that only its owner may read, or makes it.
func readOrMakeSecret(path string) (secret, made string, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		secret, err = makeSecretFile(path)
		return secret, path, err
	}
	if err != nil {
		return "", "", err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", "", fmt.Errorf("%s may be read by others than its owner: chmod 600 it", path)
	}
	b, err := os.ReadFile(path)
	return strings.TrimSpace(string(b)), "", err
}

func makeSecretFile(path string) (string, error) {
	var b [32]byte
	rand.Read(b[:])
	secret := base64.RawURLEncoding.EncodeToString(b[:])
	return secret, durable.CreateFile(path, []byte(secret+"\n"))
}
