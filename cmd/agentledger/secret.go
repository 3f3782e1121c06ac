package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/seal"
)

// The environment variables that hold secrets themselves.
const (
	masterKeyVariable      = "AGENTLEDGER_MASTER_KEY"
	platformSecretVariable = "AGENTLEDGER_PLATFORM_SECRET"
)

// masterKey returns the key that private keys are sealed under. created says
// that it was made just now.
func masterKey(s config.Store) (key seal.Key, created bool, err error) {
	if secret := os.Getenv(masterKeyVariable); secret != "" {
		key, err = seal.FromSecret(secret)
	} else {
		key, created, err = seal.LoadOrCreate(s.MasterKeyPath())
	}
	if err != nil {
		return seal.Key{}, false, fmt.Errorf("master key: %w", err)
	}
	return key, created, nil
}

// olderMasterKeys returns the keys that are only opened with.
func olderMasterKeys(s config.Store) (keys []seal.Key, err error) {
	for _, file := range s.OlderMasterKeyFile {
		key, err := seal.Load(file)
		if err != nil {
			return nil, fmt.Errorf("older master key: %w", err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// wantMasterKey refuses to go on where a new master key would be made: what is
// imported is sealed under the one of the service that it comes from.
func wantMasterKey(s config.Store) error {
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

// platformSecret returns the platform secret and, when it was made just now, the
// file that it is in.
func platformSecret(c config.Serve) (secret, madeFile string, err error) {
	if secret = os.Getenv(platformSecretVariable); secret == "" {
		secret, madeFile, err = secretFile(c.PlatformSecretPath())
	}
	if err == nil && len(secret) < minSecret {
		err = fmt.Errorf("shorter than %d characters", minSecret)
	}
	if err != nil {
		return "", "", fmt.Errorf("platform secret: %w", err)
	}
	return secret, madeFile, nil
}

// knownPlatformSecret returns the platform secret of a server that runs; it makes none.
func knownPlatformSecret(c config.Serve) (string, error) {
	if os.Getenv(platformSecretVariable) == "" {
		if _, err := os.Stat(c.PlatformSecretPath()); err != nil {
			return "", fmt.Errorf("platform secret: %w", err)
		}
	}
	secret, _, err := platformSecret(c)
	return secret, err
}

// secretFile reads a file that only its owner may read, or makes it.
func secretFile(path string) (secret, made string, err error) {
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
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(secret + "\n")
	dir, dirErr := os.Open(filepath.Dir(path))
	if dirErr == nil {
		dirErr = errors.Join(dir.Sync(), dir.Close())
	}
	return secret, errors.Join(err, f.Sync(), f.Close(), dirErr)
}
