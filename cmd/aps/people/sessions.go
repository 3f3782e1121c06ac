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

// storedSession is the session of one service in the file.
type storedSession struct {
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

// readSessions returns the saved sessions by service. It rejects a file that others may read.
func readSessions() (path string, stored map[string]storedSession, err error) {
	if path, err = keptPath(); err != nil {
		return "", nil, err
	}
	stored = map[string]storedSession{}
	found, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, stored, nil
	}
	if err != nil {
		return "", nil, err
	}
	if err := secret.CheckAccess(found); err != nil {
		return "", nil, fmt.Errorf("%s: %w, or remove it and sign in", path, err)
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &stored)
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	return path, stored, nil
}

// readKept returns the cookie of the saved session of a service, or nil.
func readKept(base string) (*http.Cookie, error) {
	host, err := hostOf(base)
	if err != nil {
		return nil, err
	}
	_, stored, err := readSessions()
	if err != nil {
		return nil, err
	}
	k, ok := stored[host]
	if !ok {
		return nil, nil
	}
	return &http.Cookie{Name: k.Name, Value: k.Value}, nil
}

// keepSession saves the session of a service and replaces the previous one.
func keepSession(base string, cookie *http.Cookie) (path string, err error) {
	return changeSessions(base, func(stored map[string]storedSession, host string) {
		stored[host] = storedSession{cookie.Name, cookie.Value}
	})
}

func dropSession(base string) error {
	_, err := changeSessions(base, func(stored map[string]storedSession, host string) { delete(stored, host) })
	return err
}

func changeSessions(base string, change func(stored map[string]storedSession, host string)) (string, error) {
	host, err := hostOf(base)
	if err != nil {
		return "", err
	}
	path, stored, err := readSessions()
	if err != nil {
		return "", err
	}
	change(stored, host)
	text, err := json.Marshal(stored, json.Deterministic(true))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return path, durable.ReplaceFile(path, text)
}
