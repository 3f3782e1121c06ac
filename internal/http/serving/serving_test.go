package serving_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/http/serving"
)

// lockedBuffer is a log that may be read while it is being written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// A panic that only http.Server recovers is logged as an error. Errors caused by clients are not.
func TestPanicOfTheServerIsLogged(t *testing.T) {
	out := new(lockedBuffer)
	s, err := serving.Open([]serving.Surface{{Name: "main", Address: "127.0.0.1:0",
		Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("oops-3") })}}, serving.Times{},
		slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelInfo})))
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range []string{"NONSENSE\r\n\r\n", "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"} {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.URL("main"), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, request)
		_, _ = io.ReadAll(c) // to its end
		_ = c.Close()
	}
	if err := s.Drain(context.Background()); err != nil {
		t.Error(err)
	}
	if got := out.String(); strings.Count(got, "level=") != 1 || !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "oops-3") {
		t.Errorf("logged: %s", got)
	}
	select {
	case err := <-s.Failed:
		t.Errorf("a drained listener failed: %v", err)
	default:
	}
}

// If a listener cannot be opened, Open returns an error, and Drain closes the others.
func TestTakenAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	served := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a request was answered before all listeners were open")
	})
	s, err := serving.Open([]serving.Surface{
		{Name: "main", Address: "127.0.0.1:0", Handler: served},
		{Name: "metrics"},
		{Name: "identity", Address: l.Addr().String(), Handler: http.NotFoundHandler()},
	}, serving.Times{}, slog.New(slog.DiscardHandler))
	if err == nil || s.URL("main") == "" || s.URL("metrics") != "" || s.URL("identity") != "" {
		t.Fatalf("got %v, %s", err, s.Describe())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	early, err := http.NewRequestWithContext(ctx, "GET", s.URL("main"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := http.DefaultClient.Do(early); err == nil {
		answer.Body.Close()
	}
	if err := s.Drain(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(s.URL("main"), "http://")); err == nil {
		t.Error("the first listener is still open")
	}
}
