package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// scale is one server whose log grows from step to step. Each event is signed, sent and verified as always.
type scale struct {
	*suite
	dir     string
	service *service
	member  *member
	size    int           // events that were sent
	ahead   <-chan signed // set while the next requests are signed

	background float64 // processors that the server's own work takes beside reads
}

// scales measures what the size of a log costs: an event that is added, what is read of it, the start of the server,
// its memory, a whole re-verification, and bytes on disk. What is told of reads is processor time too, because it
// depends less on the other work of the machine.
func (s *suite) scales(ctx context.Context) error {
	dir, remove, err := s.folder()
	if err != nil {
		return err
	}
	defer remove()
	x := &scale{suite: s, dir: dir}
	if x.service, err = s.serve(dir, "--metrics-listen", "127.0.0.1:0"); err != nil {
		return err
	}
	defer func() { x.service.stop() }()
	if x.member, err = x.service.foundWithPolicy(ctx); err != nil {
		return err
	}
	for _, size := range s.Scale {
		if err := x.measureAt(ctx, size); err != nil {
			return fmt.Errorf("%d events: %w", size, err)
		}
	}
	return nil
}

func (x *scale) measureAt(ctx context.Context, size int) error {
	if err := x.growTo(ctx, size); err != nil {
		return err
	}
	if err := x.settle(ctx); err != nil {
		return err
	}
	for _, r := range x.resources() {
		if err := x.readScaled(r); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return x.measureOffline(ctx)
}

// name is that of a line of results.
func (x *scale) name(part string) string { return fmt.Sprintf("scale/events=%d/%s", x.size, part) }

const (
	scaleLines = 1000 // of a batch
	scaleBatch = 50   // batches that are signed before they are sent
)

// growTo sends events until there are so many. The time of the last tenth is told: nothing is signed beside it.
func (x *scale) growTo(ctx context.Context, size int) error {
	last := size - max(scaleLines*scaleBatch, (size-x.size)/10)
	took, cpu, sent := time.Duration(0), time.Duration(0), 0
	for x.size < size {
		n := min(size-x.size, scaleLines*scaleBatch)
		requests, err := x.takeBatches(n)
		if err != nil {
			return err
		}
		if next := x.size + n; next < last {
			x.signAhead(next, scaleLines*scaleBatch)
		}
		pid := x.service.cmd.Process.Pid
		begin, before := time.Now(), spent(pid)
		if err := x.sendAll(ctx, requests); err != nil {
			return err
		}
		if x.size += n; x.size > last {
			took, cpu, sent = took+time.Since(begin), cpu+spent(pid)-before, sent+n
		}
	}
	x.emit(x.name("append"), sent, value{float64(sent) / took.Seconds(), "events/s"},
		value{float64(cpu.Microseconds()) / float64(sent), "cpu-µs/event"})
	return nil
}

// signed are requests that were signed while others were sent.
type signed struct {
	requests [][]byte
	err      error
}

// signAhead begins to sign n events from a size on. The next takeBatches waits for them.
func (x *scale) signAhead(from, n int) {
	ready := make(chan signed, 1)
	x.ahead = ready
	go func() {
		requests, err := x.batches(from, n)
		ready <- signed{requests, err}
	}()
}

// takeBatches returns the requests of the next n events.
func (x *scale) takeBatches(n int) ([][]byte, error) {
	if x.ahead == nil {
		return x.batches(x.size, n)
	}
	s := <-x.ahead
	x.ahead = nil
	return s.requests, s.err
}

// batches signs n events from a size on, each with a text of its own. One in a thousand has a trace of its own.
func (x *scale) batches(from, n int) ([][]byte, error) {
	random := rand.New(rand.NewPCG(9, uint64(from)))
	texts := make([]string, n)
	for i := range texts {
		texts[i] = text(random, entrySize/2)
	}
	all, err := signAll(n, func(i int) ([]byte, error) {
		e := client.Event{EventID: id.Event(fmt.Sprint("s-", from+i)), TraceID: "trc_bench", ActorPrincipal: "bench",
			ActionKind: "tool_call", Tool: "acme.orders.read", Decision: id.Allow, Payload: map[string]string{"text": texts[i]}}
		if (from+i)%scaleLines == 0 {
			e.TraceID = trace(from + i)
		}
		return x.member.signer.SignEvent(e)
	})
	var requests [][]byte
	for len(all) > 0 {
		var body []byte
		lines := all[:min(scaleLines, len(all))]
		for _, line := range lines {
			body = append(append(body, line...), '\n')
		}
		requests = append(requests, x.member.post(eventsPath+"/batch", "application/x-ndjson", body))
		all = all[len(lines):]
	}
	return requests, err
}

func trace(n int) id.Trace { return id.Trace(fmt.Sprint("trc_", n-n%scaleLines)) }

// sendAll sends batches on a few connections.
func (x *scale) sendAll(ctx context.Context, requests [][]byte) error {
	const connections = 8
	limit := loopLimit{Time: 10 * time.Minute, Count: len(requests)}
	_, err := closedLoop(connections, limit, func(int) (step, error) {
		c, err := dialConn(x.service.url())
		return func(n int) error {
			_, err := c.Expect(http.StatusOK, requests[n])
			return errors.Join(err, ctx.Err())
		}, err
	})
	return err
}

// settle waits for the server's own work, and tells what of it is left.
func (x *scale) settle(ctx context.Context) (err error) {
	if x.background, err = x.service.settle(ctx, x.size); err != nil {
		return err
	}
	x.emit(x.name("background"), 1, value{x.background, "cpus"})
	return nil
}

// resources are what is read at each size.
func (x *scale) resources() []resource {
	l := &library{service: x.service, member: x.member, size: x.size, events: x.size}
	list := func(query string) []byte {
		return withCookie(get("/v1/console/events?limit=50"+query), x.service)
	}
	return []resource{
		{"head", func(*rand.Rand) []byte { return get(l.public() + "head") }},
		{"inclusion", func(r *rand.Rand) []byte { return l.proof(r.IntN(l.size)) }},
		{"bundle", func(r *rand.Rand) []byte {
			return get(fmt.Sprintf("/v1/public/orgs/%s/verify/s-%d", l.member.slug, r.IntN(l.events)))
		}},
		{"list-newest", func(*rand.Rand) []byte { return list("") }},
		{"list-trace", func(r *rand.Rand) []byte { return list("&trace_id=" + string(trace(r.IntN(x.size)))) }},
	}
}

// withCookie adds the session of an organization's owner to a request.
func withCookie(request []byte, v *service) []byte {
	u, err := url.Parse(v.url())
	if err != nil {
		return request
	}
	end := len(request) - len("\r\n")
	out := append([]byte{}, request[:end]...)
	for _, c := range v.http.Jar.Cookies(u) {
		out = fmt.Appendf(out, "Cookie: %s=%s\r\n", c.Name, c.Value)
	}
	return append(out, request[end:]...)
}

func (x *scale) readScaled(r resource) error {
	pid := x.service.cmd.Process.Pid
	before, begin := spent(pid), time.Now()
	took, err := x.askRandomly(x.service.url(), r, 4)
	if err != nil {
		return err
	}
	other := time.Duration(x.background * float64(time.Since(begin)))
	all := float64(took.Steps()) * (x.limit().Warm + x.limit().Time).Seconds() / x.limit().Time.Seconds()
	cpu := float64((spent(pid) - before - other).Microseconds()) / all
	x.emitLoad(x.name(r.name), took, 1, "requests/s", value{cpu, "cpu-µs/request"})
	return nil
}

// measureOffline stops the server, re-verifies its store, counts its bytes and starts it again.
func (x *scale) measureOffline(ctx context.Context) error {
	resident := peakMemory(x.service.cmd.Process.Pid)
	if err := x.service.stop(); err != nil {
		return err
	}
	bytes, err := x.rested(ctx, x.dir)
	if err != nil {
		return err
	}
	x.emit(x.name("store"), x.size, value{float64(bytes) / float64(x.size), "B/event"},
		value{float64(resident) / (1 << 20), "server-peak-MiB"})
	if err := x.checkStore(ctx, x.dir, x.name("fsck"), x.size); err != nil {
		return err
	}
	begin := time.Now()
	jar := x.service.http.Jar
	if x.service, err = x.serve(x.dir, "--metrics-listen", "127.0.0.1:0"); err != nil {
		return err
	}
	x.service.http.Jar = jar
	x.emit(x.name("open"), 1, value{float64(time.Since(begin).Milliseconds()), "ms"})
	return x.service.login(ctx)
}
