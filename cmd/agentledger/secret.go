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
)

// platformSecretVariable is the environment variable that holds the secret itself.
const platformSecretVariable = "AGENTLEDGER_PLATFORM_SECRET"

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
