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

// Mark is a file with the newest time that a service has trusted, for its next
// start. One process writes it at a time.
type Mark struct{ Path string }

// Read returns the time, zero when there is no file. The content is a time in RFC
// 3339 and a line feed; all else is an error.
func (m Mark) Read() (time.Time, error) {
	b, err := os.ReadFile(m.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("read newest trusted time: %w", err)
	}
	t, err := time.Parse(time.RFC3339Nano, strings.TrimSuffix(string(b), "\n"))
	if err != nil {
		return time.Time{}, fmt.Errorf("read newest trusted time: %s: %w", m.Path, err)
	}
	return t, nil
}

// Write replaces the time, durably when it returns.
func (m Mark) Write(t time.Time) error {
	if err := durable.ReplaceFile(m.Path, []byte(t.UTC().Format(time.RFC3339Nano)+"\n")); err != nil {
		return fmt.Errorf("write newest trusted time: %w", err)
	}
	return nil
}
