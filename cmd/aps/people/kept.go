package people

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/internal/secret"
)

// keptSession is the session of one service in the file.
type keptSession struct {
	Name  string `json:"name"` // of the cookie
	Value string `json:"value"`
}

// keptPath returns the file of the saved sessions, in the folder of the user's settings.
func keptPath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("folder of the user: %w", err)
	}
	return filepath.Join(dir, "agentledger", "sessions.json"), nil
}

// readAllKept returns the saved sessions by service. It rejects a file that others may read.
func readAllKept() (path string, kept map[string]keptSession, err error) {
	if path, err = keptPath(); err != nil {
		return "", nil, err
	}
	kept = map[string]keptSession{}
	found, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, kept, nil
	}
	if err != nil {
		return "", nil, err
	}
	if err := secret.CheckAccess(found); err != nil {
		return "", nil, fmt.Errorf("%s: %w, or remove it and sign in", path, err)
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	return path, kept, nil
}

// readKept returns the cookie of the saved session of a service, or nil.
func readKept(base string) (*http.Cookie, error) {
	host, err := hostOf(base)
	if err != nil {
		return nil, err
	}
	_, kept, err := readAllKept()
	if err != nil {
		return nil, err
	}
	k, ok := kept[host]
	if !ok {
		return nil, nil
	}
	return &http.Cookie{Name: k.Name, Value: k.Value}, nil
}

// keepSession saves the session of a service and replaces the previous one.
func keepSession(base string, cookie *http.Cookie) (path string, err error) {
	return changeKept(base, func(kept map[string]keptSession, host string) {
		kept[host] = keptSession{cookie.Name, cookie.Value}
	})
}

func dropSession(base string) error {
	_, err := changeKept(base, func(kept map[string]keptSession, host string) { delete(kept, host) })
	return err
}

func changeKept(base string, change func(kept map[string]keptSession, host string)) (string, error) {
	host, err := hostOf(base)
	if err != nil {
		return "", err
	}
	path, kept, err := readAllKept()
	if err != nil {
		return "", err
	}
	change(kept, host)
	text, err := json.Marshal(kept, json.Deterministic(true))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return path, durable.ReplaceFile(path, text)
}
