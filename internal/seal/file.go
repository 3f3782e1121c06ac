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

// LoadOrCreateKey reads the master key file at path or, when there is none, makes a
// random key and writes it there, created is then true. The file's directory must
// exist.
//
// A caller that finds sealed values in its store and created true has lost its
// master key: it must stop rather than go on with the new one.
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

// LoadKey reads a master key file. It must be a regular file with the two lines that LoadOrCreateKey writes, whose
// line ends may be LF or CRLF and of which the last may lack its line end. It returns fs.ErrNotExist (wrapped) if the
// file is missing, and an error if other users can read it (secret.CheckAccess).
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

// writeKeyFile makes the file durable before anything can be sealed under its key. A
// file that could not be written to its end is removed; one that a crash cut
// short is refused by Load, and nothing was sealed under it.
func writeKeyFile(path string, key Key) error {
	content := fileHeader + "\n" + base64.StdEncoding.EncodeToString(key.secret()[:]) + "\n"
	return durable.CreateFile(path, []byte(content))
}
