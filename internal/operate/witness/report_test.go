package witness

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/http/egress/egresstest"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

// lines collects the logged lines.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// with returns the lines that contain a text.
func (l *lines) with(text string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// While the service's witness is unavailable, however many logs move and however often it is asked, one line is logged
// with the class of the failure, and one when it is available again.
func TestAwayWitnessIsToldOnce(t *testing.T) {
	w, logged := newWorld(t), new(lines)
	x := w.witness("x.example")
	x.AnswerWith(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	w.start(x.PolicyLine("x")+"quorum x\n", func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(logged, nil)) })
	for n := 1; n <= 3; n++ {
		w.append(red)
		w.append(blue)
		w.eventually("it is asked, and away", func() bool { return w.asks(unwell) >= n })
		w.later(11 * time.Minute)
	}
	if got := logged.with("witness"); len(got) != 1 || !strings.Contains(got[0], "level=WARN") || !strings.Contains(got[0], "witness=x.example class=connection") {
		t.Errorf("got %q", got)
	}
	x.AnswerWith(nil)
	w.later(11 * time.Minute)
	w.eventually("both are cosigned", func() bool { return w.by(red, x) == 1 && w.by(blue, x) == 1 })
	if got := logged.with("has recovered"); len(got) != 1 || len(logged.with("witness")) != 2 {
		t.Errorf("got %q", logged.with("witness"))
	}
	if got := w.metric("agentledger_witness_unanswered_total", "connection"); got < 3 {
		t.Errorf("%d calls without an answer are counted", got)
	}
}

// An organization that names a witness learns the same for a name with a private address and for one that does not
// exist; the operator's metrics distinguish them.
func TestPrivateAndUnknownNamesLookTheSame(t *testing.T) {
	unknown := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no such name") }}
	for name, row := range map[string]struct {
		host     string
		resolver *net.Resolver
		class    egress.Class
	}{
		"private": {"private.example", egresstest.Resolver(t, func(int) string { return "192.168.0.1" }), egress.ClassAddress},
		"unknown": {"nobody.invalid", unknown, egress.ClassDNS},
	} {
		w := newWorld(t)
		allow := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		w.client = egress.New(egress.Options{Allow: allow, Resolver: row.resolver, MaxAnswer: MaxAnswer})
		w.start("")
		key := testSigner(t, "own.example").Key()
		w.name(red, org.Witnessing{Policy: line("own", key, "https://"+row.host+"/") + "quorum own\n"})
		w.eventually("asked", func() bool { return w.asks(unwell) > 0 })
		w.eventually("unchanged under way", func() bool { return w.last(red).At != 0 })
		got := w.last(red)
		got.At = 0
		if want := (WitnessStatus{Name: "own", Key: key, Last: "unwell"}); got != want {
			t.Errorf("%s: got %+v", name, got)
		}
		if n := w.metric("agentledger_witness_unanswered_total", string(row.class)); n < maxTries {
			t.Errorf("%s: %d calls of class %s", name, n, row.class)
		}
	}
}
