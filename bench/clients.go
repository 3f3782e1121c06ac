package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// callers are the numbers of concurrent callers of one client, each of which waits for the answer to its event.
func callers() []int { return []int{64, 1024} }

// perSecond is how many events of a load there are for each second of its window.
const perSecond = 10_000

// clients measures the clients next to raw batches, and next to the peer with an HTTP client. Events are signed before a
// load. Processor time is that of both sides.
func (s *suite) clients(ctx context.Context) error {
	return s.serving(ctx, func(v *service, m *member) error {
		others, stop, err := s.startClients(ctx, v, m)
		if err != nil {
			return err
		}
		defer stop()
		for _, n := range callers() {
			if err := s.loadBatches(v, m, n); err != nil {
				return err
			}
			if err := s.loadGoClient(ctx, v, m, n); err != nil {
				return err
			}
			for _, c := range others {
				if err := c.load(s, n); err != nil {
					return err
				}
			}
			for _, settings := range settings(n) {
				err := s.servingTessera(settings, func(p *process) error { return s.loadPeer(ctx, p.url(), settings, n) })
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// count returns how many events a load of n callers has.
func (s *suite) count(n int) int { return max(4*n, int(s.Window.Seconds()*perSecond)) / n * n }

// together runs a load of some events once and prints its rate and the processor time of this process and its children.
func (s *suite) together(name string, n, events int, load func() error) error {
	began, cpu := time.Now(), spent(os.Getpid())
	if err := load(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	cpu = spent(os.Getpid()) - cpu
	s.emit(fmt.Sprintf("clients/%s/callers=%d", name, n), events, value{float64(events) / time.Since(began).Seconds(), "events/s"},
		value{float64(cpu.Microseconds()) / float64(events), "cpu-µs/event"})
	return nil
}

// loadBatches sends batches that have as many events as there are callers, at most 1,000, one after the other.
func (s *suite) loadBatches(v *service, m *member, n int) error {
	size := lines(min(n, 1000))
	requests, err := size.posts(fmt.Sprint("raw", n), s.count(n)/int(size), always(m))
	if err != nil {
		return err
	}
	c, err := dialConn(v.url())
	if err != nil {
		return err
	}
	return s.together("batches", n, len(requests)*int(size), func() error {
		for _, request := range requests {
			if err := size.send(c, request); err != nil {
				return err
			}
		}
		return nil
	})
}

// each calls send with each number below count, from n goroutines.
func each(n, count int, send func(i int) error) error {
	var next atomic.Int64
	var group errgroup.Group
	for range n {
		group.Go(func() error {
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				if err := send(i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (s *suite) loadGoClient(ctx context.Context, v *service, m *member, n int) error {
	c, err := client.New(client.Config{BaseURL: v.url(), Token: m.IngestKey.Secret})
	if err != nil {
		return err
	}
	defer c.CloseIdle()
	signed := make([][]byte, s.count(n))
	payload := text(rand.New(rand.NewPCG(4, 4)), entrySize*3/5)
	for i := range signed {
		signed[i], err = m.signer.SignEvent(client.Event{TraceID: id.Trace(fmt.Sprint("trc-", i%n)), ActionKind: "tool_call", Tool: "acme.orders.read",
			Payload: map[string]string{"text": payload}})
		if err != nil {
			return err
		}
	}
	return s.together("go", n, len(signed), func() error {
		return each(n, len(signed), func(i int) error {
			_, err := c.Send(ctx, signed[i])
			return err
		})
	})
}

// loadPeer sends entries to the peer with an HTTP client.
func (s *suite) loadPeer(ctx context.Context, url string, settings peerSettings, n int) error {
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}
	defer c.CloseIdleConnections()
	payload := text(rand.New(rand.NewPCG(3, 3)), entrySize)
	count := s.count(n)
	add := func(i int) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/add", bytes.NewReader(entry(fmt.Sprint("e", i), payload)))
		if err != nil {
			return err
		}
		answer, err := c.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusCreated {
			return fmt.Errorf("status %d, %w", answer.StatusCode, err)
		}
		return nil
	}
	return s.together("tessera/"+settings.String(), n, count, func() error { return each(n, count, add) })
}

// clientProcess is a program that sends events through a client. For each line "callers events" it signs the events and prints a
// line, and for the next line it sends them and prints a line.
type clientProcess struct {
	name string
	in   io.Writer
	out  *bufio.Scanner
}

// startClients starts the programs of the clients for other languages.
func (s *suite) startClients(ctx context.Context, v *service, m *member) (all []*clientProcess, stop func(), err error) {
	tree, err := productDir(ctx)
	if err != nil {
		return nil, nil, err
	}
	key := filepath.Join(s.dir, "agent.key")
	if err := os.WriteFile(key, []byte(m.Agent.PrivateB64), 0o600); err != nil {
		return nil, nil, err
	}
	environment := append(os.Environ(), "APS_URL="+v.url(), "APS_TOKEN="+m.IngestKey.Secret, "APS_ORG="+m.OrganizationID.String(),
		"APS_AGENT="+string(m.Agent.AgentID), "APS_KEY_ID="+string(m.Agent.KeyID), "APS_KEY_FILE="+key)
	var stops []func()
	stop = func() {
		for _, f := range stops {
			f()
		}
	}
	for _, c := range []struct {
		name    string
		command []string
	}{
		{"typescript", []string{"node", "--no-warnings", "clients/typescript/bench/callers.js"}},
		{"python-threads", []string{"clients/python/interpreter", "-B", "clients/python/tests/callers.py", "threads"}},
		{"python-tasks", []string{"clients/python/interpreter", "-B", "clients/python/tests/callers.py", "tasks"}},
	} {
		cmd := exec.Command(c.command[0], c.command[1:]...)
		cmd.Dir, cmd.Env, cmd.Stderr = tree, environment, os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, nil, err
		}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("start the client for %s: %w", c.name, err)
		}
		stops = append(stops, func() {
			in.Close()
			_ = cmd.Wait()
		})
		p := &clientProcess{name: c.name, in: in, out: bufio.NewScanner(out)}
		all = append(all, p)
		if err := errors.Join(p.step("64 640"), p.step("")); err != nil { // a warm-up
			stop()
			return nil, nil, err
		}
	}
	return all, stop, nil
}

// step writes a line and waits for one.
func (p *clientProcess) step(line string) error {
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		return err
	}
	if !p.out.Scan() {
		return fmt.Errorf("the client for %s ended: %w", p.name, errors.Join(io.ErrUnexpectedEOF, p.out.Err()))
	}
	return nil
}

func (p *clientProcess) load(s *suite, n int) error {
	count := s.count(n)
	if err := p.step(fmt.Sprint(n, " ", count)); err != nil {
		return err
	}
	return s.together(p.name, n, count, func() error { return p.step("") })
}
