package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unicode"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/internal/secret"
)

// minSecret is the minimum length of a platform secret.
const minSecret = 16

// loadPlatformSecret returns the platform secret and, if it was generated just now, the file that contains it.
func loadPlatformSecret(c config.Serve) (text, madeFile string, err error) {
	if text = secret.Getenv(config.PlatformSecretVariable); text == "" {
		text, madeFile, err = readOrMakeSecret(c.PlatformSecretPath())
	}
	if err == nil {
		err = checkPlatformSecret(text)
	}
	if err != nil {
		return "", "", fmt.Errorf("platform secret: %w (--platform-secret-file or %s)", err, config.PlatformSecretVariable)
	}
	return text, madeFile, nil
}

// checkPlatformSecret rejects a secret that is too short, or that callers could not send as the value of a header.
func checkPlatformSecret(text string) error {
	if err := secret.CheckLine(text); err != nil {
		return err
	}
	switch {
	case text != strings.TrimSpace(text):
		return errors.New("begins or ends with white space")
	case strings.ContainsFunc(text, unicode.IsControl):
		return errors.New("contains a control character")
	case len(text) < minSecret:
		return fmt.Errorf("shorter than %d characters", minSecret)
	}
	return nil
}

// servedPlatformSecret is loadPlatformSecret, or knownPlatformSecret if the service is read-only.
func servedPlatformSecret(c config.Serve) (text, madeFile string, err error) {
	if !c.ReadOnly {
		return loadPlatformSecret(c)
	}
	text, err = knownPlatformSecret(c)
	return text, "", err
}

// knownPlatformSecret returns the platform secret of a running server. It does not generate one.
func knownPlatformSecret(c config.Serve) (string, error) {
	if secret.Getenv(config.PlatformSecretVariable) == "" {
		if _, err := os.Stat(c.PlatformSecretPath()); err != nil {
			return "", fmt.Errorf("platform secret: %w (--platform-secret-file or %s)", err, config.PlatformSecretVariable)
		}
	}
	text, _, err := loadPlatformSecret(c)
	return text, err
}

// readOrMakeSecret reads the secret from a file, or creates the file with a random secret.
func readOrMakeSecret(path string) (text, made string, err error) {
	text, err = secret.ReadLine(path)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = makeSecretFile(path)
		return text, path, err
	}
	return text, "", err
}

func makeSecretFile(path string) (string, error) {
	var b [32]byte
	rand.Read(b[:])
	text := base64.RawURLEncoding.EncodeToString(b[:])
	return text, durable.CreateFile(path, []byte(text+"\n"))
}
