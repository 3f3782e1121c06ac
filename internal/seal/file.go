package seal

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/internal/secret"
)

// fileHeader is the first line of a master key file. The second and last line is the key in base64.
const fileHeader = "agentledger-master-key/v1"

// LoadOrCreateKey reads the master key file at path. If the file does not exist, it generates a random key, writes it
// there and returns created = true. The folder of the file must exist.
//
// If created is true but the store contains sealed values, their master key is lost: the caller must stop instead of
// continuing with the new key.
func LoadOrCreateKey(path string) (key Key, created bool, err error) {
	key, err = LoadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, false, err
	}
	key = NewKey()
	if err := writeKeyFile(path, key); err != nil {
		return Key{}, false, fmt.Errorf("create master key file: %w", err)
	}
	return key, true, nil
}

// LoadKey reads a master key file. It must be a regular file with the two lines that LoadOrCreateKey writes. Line ends
// may be LF or CRLF, and the last one may be missing. It returns fs.ErrNotExist (wrapped) if the file does not exist,
// and an error if other users can read it (secret.CheckAccess).
func LoadKey(path string) (Key, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file", path)
	}
	if err != nil {
		return Key{}, fmt.Errorf("read master key file: %w", err)
	}
	content, err := secret.ReadFile(path)
	if err != nil {
		return Key{}, fmt.Errorf("read master key file: %w", err)
	}
	key, err := parseFile(content)
	if err != nil {
		return Key{}, fmt.Errorf("read master key file %s: %w", path, err)
	}
	return key, nil
}

func parseFile(content string) (Key, error) {
	header, line, found := strings.Cut(content, "\n")
	if !found || strings.TrimSuffix(header, "\r") != fileHeader {
		return Key{}, fmt.Errorf("header line: %w", ErrMalformed)
	}
	key, err := KeyFromSecret(line)
	if err != nil {
		return Key{}, fmt.Errorf("key line: %w", err)
	}
	return key, nil
}

// writeKeyFile makes the file durable before anything can be sealed under its key. If the file cannot be written
// completely, it is removed. If a crash truncates it, LoadKey rejects it; nothing was sealed under its key.
func writeKeyFile(path string, key Key) error {
	content := fileHeader + "\n" + base64.StdEncoding.EncodeToString(key.secret()[:]) + "\n"
	return durable.CreateFile(path, []byte(content))
}
