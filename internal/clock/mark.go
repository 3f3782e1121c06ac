package clock

import (
	"errors"
	"fmt"
	"github.com/agentledger/agentledger/internal/durable"
	"io/fs"
	"os"
	"strings"
	"time"
)

// Mark is a file with the latest time that the service has trusted, for the next start. Only one process may write it.
type Mark struct{ Path string }

// Read returns the time, or zero if the file does not exist. The content must be a time in RFC 3339 and a line feed.
func (m Mark) Read() (time.Time, error) {
	b, err := os.ReadFile(m.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("read latest trusted time: %w", err)
	}
	t, err := time.Parse(time.RFC3339Nano, strings.TrimSuffix(string(b), "\n"))
	if err != nil {
		return time.Time{}, fmt.Errorf("read latest trusted time: %s: %w", m.Path, err)
	}
	return t, nil
}

// Write replaces the time. The new time is durable when Write returns.
func (m Mark) Write(t time.Time) error {
	if err := durable.ReplaceFile(m.Path, []byte(t.UTC().Format(time.RFC3339Nano)+"\n")); err != nil {
		return fmt.Errorf("write latest trusted time: %w", err)
	}
	return nil
}
