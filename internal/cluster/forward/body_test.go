package forward_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/cluster/forward"
	"github.com/agentledger/agentledger/internal/http/edge"
)

// An owner that is giving an organization away rejects requests at once. A request with a small body is sent to the
// next owner; the client of a large one has to retry. The other organization is not affected.
func TestOwnerGivesAway(t *testing.T) {
	for _, test := range []struct {
		name string
		body int
		want int
	}{
		{"no body", 0, 200}, {"a small body", 100, 200}, {"the largest that is kept", 16 << 10, 200},
		{"a larger one", 16<<10 + 1, 503}, {"a much larger one", 4 << 20, 503},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newService(t, 3, readAll)
			s.passer().proxy.Hurry(60e9, 1e9, 1e9, 1e9)
			s.nodes[0].view.drain()
			done := make(chan got)
			go func() {
				done <- s.passer().ask(t.Context(), "POST", "/red/x", strings.NewReader(strings.Repeat("x", test.body)))
			}()
			if test.want == 200 {
				eventually(t, "the request waits", func() bool { return s.passer().proxy.InFlight() == 1 })
				s.passer().ask(t.Context(), "POST", "/blue/x", strings.NewReader("abc")).want(t, 200, "3")
				s.move(red, s.nodes[1])
			}
			g := <-done
			if test.want == 503 {
				g.want(t, 503, `"code":"overloaded"`)
			} else {
				g.want(t, 200, strconv.Itoa(test.body))
				g.wantNode(t, s.nodes[1])
			}
			if n := s.nodes[0].asked.Load(); n != 0 {
				t.Errorf("the node that gave it away handled %d requests", n)
			}
		})
	}
}

// A body is read by one attempt only: the goroutine of a rejected one, which may still run, reads nothing.
func TestBodyOfARefusedAttempt(t *testing.T) {
	for readBefore, want := range map[bool]string{false: "abcdef", true: ""} {
		r, _ := http.NewRequestWithContext(t.Context(), "POST", "/red/x", strings.NewReader("abcdef"))
		body, again := forward.Refused(r, readBefore)
		late, err := io.ReadAll(body)
		if again == readBefore || again && (len(late) > 0 || err == nil) {
			t.Errorf("read before %v: sent again %v, and the refused attempt read %q, %v", readBefore, again, late, err)
		}
		if rest, _ := io.ReadAll(r.Body); string(rest) != want {
			t.Errorf("read before %v: the next attempt gets %q, want %q", readBefore, rest, want)
		}
	}
}

// Bodies arrive complete while the organization keeps moving between nodes.
func TestBodiesSurviveMoves(t *testing.T) {
	s := newService(t, 3, func(_ *node, w http.ResponseWriter, r *http.Request) error {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		return edge.WriteJSON(w, http.StatusOK, hex.EncodeToString(sum[:]))
	})
	for _, n := range s.nodes {
		n.proxy.Hurry(60e9, 1e9, 1e9, 1e9)
	}
	ctx, stop := context.WithCancel(t.Context())
	var moves sync.WaitGroup
	moves.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			s.nodes[i%3].view.drain()
			time.Sleep(time.Millisecond)
			s.move(red, s.nodes[(i+1)%3])
			s.nodes[i%3].view.stay()
			time.Sleep(time.Duration(i%3) * time.Millisecond)
		}
	})
	var senders sync.WaitGroup
	for sender := range 8 {
		senders.Go(func() {
			for i := range 150 {
				body := strings.Repeat(fmt.Sprint(sender, " ", i, " "), 1+100*(i%7))
				sum := sha256.Sum256([]byte(body))
				s.passer().ask(t.Context(), "POST", "/red/x", strings.NewReader(body)).want(t, 200, hex.EncodeToString(sum[:]))
			}
		})
	}
	senders.Wait()
	stop()
	moves.Wait()
}

// A node that was chosen by an older view rejects at once, and does not wait for an organization that has moved on.
func TestOlderViewIsRefusedAtOnce(t *testing.T) {
	s := newService(t, 3, readAll)
	for _, n := range s.nodes {
		n.proxy.Hurry(60e9, 60e9, 1e9, 1e9)
	}
	moved := map[id.Tenant]cluster.Node{red: s.nodes[1].view.self}
	s.nodes[0].view.set(moved)
	s.nodes[1].view.set(moved)
	done := make(chan got)
	go func() { done <- s.passer().ask(t.Context(), "POST", "/red/x", strings.NewReader("abc")) }()
	eventually(t, "the request waits", func() bool { return s.passer().proxy.InFlight() == 1 })
	s.passer().view.set(moved)
	g := <-done
	g.want(t, 200, "3")
	g.wantNode(t, s.nodes[1])
}
