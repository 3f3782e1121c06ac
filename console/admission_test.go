package console_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
)

// crowd is a console whose load control has one processor, so that four requests of an organization have slots while
// others wait.
type crowd struct {
	*world
	control *admission.Control
}

func newCrowd(t *testing.T, change ...func(*console.Options)) crowd {
	control := admission.New(1)
	set := func(o *console.Options) { o.Control = control }
	return crowd{newWorld(t, append(change, set)...), control}
}

// full reports whether red has no free slot while blue competes.
func (c crowd) full() bool {
	ended := endedContext(c.t)
	c.come(blue)
	if err := c.control.Slots.Acquire(ended, admission.TenantOf(red), 1); err != nil {
		return true
	}
	c.control.Slots.Release(admission.TenantOf(red), 1)
	return false
}

// come creates contention with a request of a tenant.
func (c crowd) come(t id.Tenant) {
	if err := c.control.Processors.Acquire(c.t.Context(), admission.TenantOf(t), 1); err != nil {
		c.t.Fatal(err)
	}
	c.control.Processors.Release(admission.TenantOf(t), 1)
}

// until waits until a condition holds.
func (c crowd) until(what string, happens func() bool) {
	c.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !happens(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("%s: not in two minutes", what)
		}
	}
}

// While there is contention, only a few calls of an organization that keeps the console busy run, in addition to its
// senders' requests, and the other organization's calls continue.
func TestConsoleHasItsShareOfSlots(t *testing.T) {
	w := newCrowd(t)
	release := w.Store.Hold() // no write becomes durable
	w.come(red)
	w.come(blue)
	answers := make(chan got, 8)
	for i := range cap(answers) {
		r := w.request("POST", "/ingest-keys", `{"name":"`+string(rune('a'+i))+`"}`)
		go func() { answers <- w.do(r) }()
	}
	w.until("red's calls at work", w.full)
	w.call(200, "GET", "/ingest-keys", "", as("blue-owner"))
	select {
	case g := <-answers:
		t.Errorf("red was answered meanwhile: %d %s", g.status, g.text)
	default:
	}
	release()
	for range cap(answers) {
		if g := <-answers; g.status != 201 {
			t.Errorf("got %d %s", g.status, g.text)
		}
	}
	if w.full() {
		t.Error("slots were not released")
	}
}

// Excess requests of one organization are refused while the other organization's requests succeed.
func TestConsoleOverload(t *testing.T) {
	w := newCrowd(t, func(o *console.Options) { o.MaxInFlight, o.MaxInFlightOrganization = 3, 2 })
	reading, body := make(chan struct{}, 2), make(chan []byte)
	answers := make(chan got, 2)
	for range 2 {
		r := w.request("PATCH", "/organization", "")
		r.Body, r.ContentLength = &slowBody{reading, body, nil}, -1
		go func() { answers <- w.do(r) }()
		<-reading
	}
	g := w.do(w.request("GET", "/agents", ""))
	if g.status != 503 || g.header.Get("Retry-After") == "" {
		t.Errorf("one more: got %d %s, Retry-After %q", g.status, g.text, g.header.Get("Retry-After"))
	}
	w.call(200, "GET", "/agents", "", as("blue-owner"))
	close(body)
	for range 2 {
		<-answers
	}
	w.call(200, "GET", "/agents", "")
}

// slowBody signals when it is read, and ends when it is released.
type slowBody struct {
	reading chan<- struct{}
	more    <-chan []byte
	rest    []byte
}

func (b *slowBody) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		select {
		case b.reading <- struct{}{}:
		default:
		}
		var ok bool
		if b.rest, ok = <-b.more; !ok {
			return 0, io.EOF
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

func (b *slowBody) Close() error { return nil }

// A request that waits for a slow sender or reader holds no slot.
func TestSlowPeersKeepNoPlace(t *testing.T) {
	w := newCrowd(t)
	reading, body := make(chan struct{}, 1), make(chan []byte)
	r := w.request("PATCH", "/organization", "")
	r.Body, r.ContentLength = &slowBody{reading, body, nil}, -1 // of unknown length: counted with the maximum weight
	answers := make(chan got, 1)
	go func() { answers <- w.do(r) }()
	<-reading
	w.until("a place while the body is awaited", func() bool { return !w.full() })
	body <- []byte(`{"name":"slow"}`)
	close(body)
	if g := <-answers; g.status != 200 {
		t.Errorf("got %d %s", g.status, g.text)
	}

	writing, read := make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	go func() {
		w.handler.ServeHTTP(slowReader{httptest.NewRecorder(), writing, read}, w.request("GET", "/agents", ""))
		close(done)
	}()
	<-writing
	w.until("a place while the answer is sent", func() bool { return !w.full() })
	close(read)
	<-done
	for range 2 { // a slot released twice would be one too many
		w.call(200, "GET", "/agents", "")
	}
}

// slowReader signals when it is written to, and accepts the bytes when it is released.
type slowReader struct {
	http.ResponseWriter
	writing chan<- struct{}
	read    <-chan struct{}
}

func (s slowReader) Write(b []byte) (int, error) {
	s.writing <- struct{}{}
	<-s.read
	return s.ResponseWriter.Write(b)
}
