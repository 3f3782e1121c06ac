package seal

import (
	"encoding/base64"
	"errors"
	"fmt"
	"github.com/agentledger/agentledger/internal/durable"
	"io"
	"io/fs"
	"os"
	"strings"
)

// fileHeader is the first line of a master key file; the second and last is the
// key in base64.
const fileHeader = "agentledger-master-key/v1\n"

const fileSize = len(fileHeader) + 44 + 1

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

// LoadKey reads a master key file. It must be a regular file that only its owner
// may read or write, with exactly the content that LoadOrCreate writes. A
// missing file is fs.ErrNotExist (wrapped).
func LoadKey(path string) (Key, error) {
	f, err := os.Open(path)
	if err != nil {
		return Key{}, fmt.Errorf("open master key file: %w", err)
	}
	defer f.Close()
	if err := checkAccess(f); err != nil {
		return Key{}, fmt.Errorf("check master key file %s: %w", path, err)
	}
	content, err := io.ReadAll(io.LimitReader(f, int64(fileSize)+1))
	if err != nil {
		return Key{}, fmt.Errorf("read master key file: %w", err)
	}
	key, err := parseFile(string(content))
	if err != nil {
		return Key{}, fmt.Errorf("read master key file %s: %w", path, err)
	}
	return key, nil
}

func checkAccess(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("mode is %#o, others than the owner have access: want 0600", mode)
	}
	return nil
}

func parseFile(content string) (Key, error) {
	body, ok := strings.CutPrefix(content, fileHeader)
	if !ok {
		return Key{}, fmt.Errorf("header line: %w", ErrMalformed)
	}
	secret, rest, ok := strings.Cut(body, "\n")
	if !ok || rest != "" {
		return Key{}, fmt.Errorf("key line: %w", ErrMalformed)
	}
	return KeyFromSecret(secret)
}

// writeKeyFile makes the file durable before anything can be sealed under its key. A
// file that could not be written to its end is removed; one that a crash cut
// short is refused by Load, and nothing was sealed under it.
func writeKeyFile(path string, key Key) error {
	content := fileHeader + base64.StdEncoding.EncodeToString(key.secret()[:]) + "\n"
	return durable.CreateFile(path, []byte(content))
}
