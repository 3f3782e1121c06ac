package clientdrill

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy is between a client and the service. It answers some requests wrongly, one in oneIn: each fault once, in a random
// order, then each again, before the service gets the request or after the service has stored the events.
type proxy struct {
	t       *testing.T
	oneIn   int
	URL     string
	service string
	http    *http.Client

	mu       sync.Mutex
	random   *rand.Rand
	faults   []fault
	deck     []fault // the faults that are dealt next
	listener net.Listener
	conns    map[net.Conn]bool
	closed   bool
	dealt    map[string]*[2]int // by name: requests that the service did not get, and that it got
	requests int

	followed  atomic.Int32 // requests to the address that redirects name
	elsewhere string
}

// newProxy starts a proxy at a service, which ends with the test.
func newProxy(t *testing.T, service string, seed uint64) *proxy {
	t.Helper()
	p := &proxy{t: t, oneIn: 2, service: service, faults: faults(), random: rand.New(rand.NewPCG(seed, 1)), conns: map[net.Conn]bool{}, dealt: map[string]*[2]int{},
		http: &http.Client{
			Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { p.followed.Add(1) }))
	t.Cleanup(elsewhere.Close)
	p.elsewhere = elsewhere.URL
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.URL, p.listener = "http://"+listener.Addr().String(), listener
	go p.accept(listener)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	_ = p.listener.Close()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.conns[conn] = true
		p.mu.Unlock()
		go p.serve(conn)
	}
}

// refuse refuses connections for a moment.
func (p *proxy) refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	address := p.listener.Addr().String()
	_ = p.listener.Close()
	time.Sleep(20 * time.Millisecond)
	var err error
	for range 1000 {
		var listener net.Listener
		if listener, err = net.Listen("tcp", address); err == nil {
			p.listener = listener
			go p.accept(listener)
			return
		}
		time.Sleep(time.Millisecond)
	}
	p.t.Errorf("the proxy can't listen again: %v", err)
}

// deal returns the fault of the next request, or nil, and whether the service gets the request.
func (p *proxy) deal() (f *fault, stored bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	if p.random.IntN(p.oneIn) > 0 {
		return nil, true
	}
	if len(p.deck) == 0 {
		p.deck = slices.Clone(p.faults)
		p.random.Shuffle(len(p.deck), func(i, j int) { p.deck[i], p.deck[j] = p.deck[j], p.deck[i] })
	}
	f, p.deck = &p.deck[0], p.deck[1:]
	stored = f.damages || !f.early && p.random.IntN(2) == 0
	n := p.dealt[f.name]
	if n == nil {
		n = new([2]int)
		p.dealt[f.name] = n
	}
	if stored {
		n[1]++
	} else {
		n[0]++
	}
	return f, stored
}

// intN returns a random number below n.
func (p *proxy) intN(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.random.IntN(n)
}

// report logs what was dealt, and fails if a redirect was followed, or if all is set and a fault was never dealt.
func (p *proxy) report(t *testing.T, client string, all bool) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	before, after := 0, 0
	for _, n := range p.dealt {
		before, after = before+n[0], after+n[1]
	}
	t.Logf("%s: %d requests; %d of %d faults: %d requests did not reach the service, and of %d the answer was lost or wrong", client,
		p.requests, len(p.dealt), len(p.faults), before, after)
	for _, name := range slices.Sorted(maps.Keys(p.dealt)) {
		t.Logf("%s: %3d %3d %s", client, p.dealt[name][0], p.dealt[name][1], name)
	}
	if n := p.followed.Load(); n > 0 {
		t.Errorf("%s: %d redirects were followed", client, n)
	}
	if all && len(p.dealt) < len(p.faults) {
		t.Errorf("%s: only %d of %d faults occurred", client, len(p.dealt), len(p.faults))
	}
}

// exchange is a request and the service's answer, which is empty if the service did not get the request.
type exchange struct {
	*proxy
	conn   net.Conn
	batch  bool
	status int
	header http.Header
	body   []byte
}

func (p *proxy) serve(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		p.mu.Lock()
		delete(p.conns, conn)
		p.mu.Unlock()
	}()
	for r := bufio.NewReader(conn); ; {
		request, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		f, stored := p.deal()
		x := &exchange{proxy: p, conn: conn, batch: strings.HasSuffix(request.URL.Path, "/batch")}
		if f != nil && f.early {
			f.answer(x)
			x.reset()
			return
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}
		if stored && x.forward(request, body) != nil {
			return
		}
		if f == nil {
			x.reply(x.body)
		} else if !f.answer(x) {
			return
		}
	}
}

func (x *exchange) forward(request *http.Request, body []byte) error {
	inner, err := http.NewRequest(request.Method, x.service+request.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	inner.Header = request.Header.Clone()
	answer, err := x.http.Do(inner)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	x.status, x.header = answer.StatusCode, answer.Header
	x.body, err = io.ReadAll(answer.Body)
	return err
}

// write writes bytes to the client. It does not matter whether the client still reads.
func (x *exchange) write(format string, arguments ...any) {
	_, _ = fmt.Fprintf(x.conn, format, arguments...)
}

// answered is the head of the service's answer without its length. It ends with a line end.
func (x *exchange) answered() string {
	return fmt.Sprintf("HTTP/1.1 %d Answer\r\nContent-Type: %s\r\nX-Request-Id: %s\r\n", x.status, x.header.Get("Content-Type"),
		x.header.Get("X-Request-Id"))
}

// reply writes the service's answer with a body.
func (x *exchange) reply(body []byte) bool {
	x.write("%sContent-Length: %d\r\n\r\n%s", x.answered(), len(body), body)
	return true
}

// foreign writes an answer that is not the service's. Headers end with a line end.
func (x *exchange) foreign(status int, headers, body string) bool {
	x.write("HTTP/1.1 %d Foreign\r\n%sContent-Length: %d\r\n\r\n%s", status, headers, len(body), body)
	return true
}

// reset ends the connection with a reset.
func (x *exchange) reset() bool {
	_ = x.conn.(*net.TCPConn).SetLinger(0)
	return false
}

// lines returns the lines of the service's answer.
func (x *exchange) lines() [][]byte {
	return bytes.SplitAfter(bytes.TrimSuffix(x.body, []byte("\n")), []byte("\n"))
}

// fault answers a request wrongly. answer reports whether the connection can be used further.
type fault struct {
	name    string
	damages bool // it changes the service's answer, so the service always gets the request
	early   bool // it answers before the body of the request was read
	answer  func(*exchange) bool
}

const page = "<!DOCTYPE html><title>Error</title><h1>default backend</h1>"

// statuses are those of pages and errors of proxies.
var statuses = []int{202, 204, 206, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 407, 408, 409, 410, 411, 413, 414, 421, 422, 425, 429, 431,
	451, 500, 502, 503, 504}

// foreignStatus answers with a status: a page, nothing, or JSON that is not provably the service's.
func foreignStatus(status int) fault {
	return fault{name: fmt.Sprint("status ", status), answer: func(x *exchange) bool {
		headers := ""
		switch status {
		case 204:
			x.write("HTTP/1.1 204 Foreign\r\n\r\n")
			return true
		case 301, 302, 303, 307, 308:
			headers = "Location: " + x.elsewhere + "/v1/ingest/events\r\n"
		case 401:
			headers = "WWW-Authenticate: Basic realm=\"proxy\"\r\n"
		case 407:
			headers = "Proxy-Authenticate: Basic realm=\"proxy\"\r\n"
		}
		switch x.intN(4) {
		case 0:
			return x.foreign(status, headers, "")
		case 1:
			return x.foreign(status, headers+"Content-Type: application/json\r\n", `{"error":"Invalid signature"}`)
		case 2:
			return x.foreign(status, headers+"Content-Type: application/json\r\nX-Request-Id: 9f2c41d07be35a6890c1d2e3\r\n",
				`{"error":"Invalid signature","request_id":"of another event"}`)
		}
		return x.foreign(status, headers+"Content-Type: text/html\r\n", page)
	}}
}

// retryAfter answers 429 or 503 with a Retry-After.
func retryAfter(name string, value func() string) fault {
	return fault{name: "Retry-After: " + name, answer: func(x *exchange) bool {
		return x.foreign([]int{429, 503}[x.intN(2)], "Retry-After: "+value()+"\r\n", page)
	}}
}

// interim sends an interim answer before the service's, or before the end of the connection.
func interim(status int, headers string) fault {
	return fault{name: fmt.Sprint("interim ", status), answer: func(x *exchange) bool {
		x.write("HTTP/1.1 %d Interim\r\n%s\r\n", status, headers)
		return x.status != 0 && x.reply(x.body)
	}}
}

// otherLines changes the lines of a batch's answer, or the event that an answer names.
func otherLines(name string, change func(lines [][]byte) [][]byte) fault {
	return fault{name: name, damages: true, answer: func(x *exchange) bool {
		if lines := x.lines(); x.batch && len(lines) > 1 {
			for i, line := range lines {
				lines[i] = append(bytes.TrimSuffix(line, []byte("\n")), '\n')
			}
			return x.reply(bytes.Join(change(lines), nil))
		}
		return x.foreign(201, "Content-Type: application/json\r\nX-Request-Id: 9f2c41d07be35a6890c1d2e3\r\n",
			`{"event_id":"evt-of-somebody-else","sequence_num":5,"event_hash":"`+strings.Repeat("0a", 32)+`","chain_valid":true,"status":"created"}`)
	}}
}

// damaged changes the service's answer.
func damaged(name string, answer func(*exchange) bool) fault {
	return fault{name: name, damages: true, answer: answer}
}

// faults returns all wrong answers.
func faults() []fault {
	all := make([]fault, 0, len(statuses))
	for _, status := range statuses {
		all = append(all, foreignStatus(status))
	}
	return append(all, []fault{
		{name: "connection refused", answer: func(x *exchange) bool { x.refuse(); return x.reset() }},
		{name: "connection reset", answer: (*exchange).reset},
		{name: "connection closed", answer: func(*exchange) bool { return false }},
		{name: "connection half-closed", answer: func(x *exchange) bool {
			_ = x.conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, x.conn)
			return false
		}},
		{name: "no answer", answer: func(x *exchange) bool {
			_, _ = io.Copy(io.Discard, x.conn) // until the client gives up
			return false
		}},
		{name: "answer before the body, and a reset", early: true, answer: func(x *exchange) bool { return x.foreign(413, "Connection: close\r\n", page) }},
		{name: "half a status line", answer: func(x *exchange) bool { x.write("HTTP/1.1 20"); return false }},
		{name: "no HTTP", answer: func(x *exchange) bool { x.write("SSH-2.0-OpenSSH_9.2\r\n"); return false }},
		{name: "status 999", answer: func(x *exchange) bool { return x.foreign(999, "", page) }},
		{name: "a header of 1 MiB", answer: func(x *exchange) bool {
			return x.foreign(200, "X-Large: "+strings.Repeat("x", 1<<20)+"\r\n", page) && x.reset()
		}},
		{name: "Content-Length that is no number", answer: func(x *exchange) bool {
			x.write("HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n%s", page)
			return false
		}},
		{name: "two lengths", answer: func(x *exchange) bool {
			x.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nnull\n")
			return false
		}},
		{name: "garbage that claims to be gzip", answer: func(x *exchange) bool {
			return x.foreign(200, "Content-Encoding: gzip\r\nContent-Type: application/json\r\n", "\x1f\x8bgarbage")
		}},
		{name: "200 page", answer: func(x *exchange) bool { return x.foreign(200, "Content-Type: text/html\r\n", page) }},
		{name: "200 without a body", answer: func(x *exchange) bool { return x.foreign(200, "", "") }},
		{name: "200 null", answer: func(x *exchange) bool { return x.foreign(200, "Content-Type: application/json\r\n", "null") }},
		{name: "200 with the event", answer: func(x *exchange) bool {
			return x.foreign(200, "Content-Type: application/json\r\n", `{"event_id":"evt","trace_id":"trc","payload":{}}`)
		}},
		interim(100, ""), interim(102, ""), interim(103, "Link: </style.css>; rel=preload\r\n"),
		{name: "101 Switching Protocols", answer: func(x *exchange) bool {
			x.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n")
			return false
		}},
		retryAfter("0", func() string { return "0" }),
		retryAfter("1", func() string { return "1" }),
		retryAfter("in a second", func() string { return time.Now().Add(time.Second).UTC().Format(http.TimeFormat) }),
		retryAfter("in the past", func() string { return "Thu, 01 Jan 1970 00:00:00 GMT" }),
		retryAfter("soon", func() string { return "soon" }),
		retryAfter("-5", func() string { return "-5" }),
		retryAfter("1e9", func() string { return "1e9" }),

		damaged("truncated body", func(x *exchange) bool {
			x.write("%sContent-Length: %d\r\n\r\n%s", x.answered(), len(x.body), x.body[:len(x.body)/2])
			return false
		}),
		damaged("Content-Length too large", func(x *exchange) bool {
			x.write("%sContent-Length: %d\r\n\r\n%s", x.answered(), len(x.body)+10, x.body)
			return false
		}),
		damaged("Content-Length too small", func(x *exchange) bool {
			x.write("%sContent-Length: %d\r\n\r\n%s", x.answered(), len(x.body)/2, x.body)
			return false
		}),
		damaged("chunks without an end", func(x *exchange) bool {
			x.write("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", x.answered(), len(x.body), x.body)
			return false
		}),
		damaged("a chunk with a wrong size", func(x *exchange) bool {
			x.write("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", x.answered(), len(x.body)/2, x.body)
			return false
		}),
		damaged("a chunk whose size is no number", func(x *exchange) bool {
			x.write("%sTransfer-Encoding: chunked\r\n\r\nzz\r\n%s\r\n0\r\n\r\n", x.answered(), x.body)
			return false
		}),
		damaged("chunks", func(x *exchange) bool {
			half := len(x.body) / 2
			x.write("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n%x;a=b\r\n%s\r\n0\r\nX-Trailer: 1\r\n\r\n", x.answered(), half, x.body[:half],
				len(x.body)-half, x.body[half:])
			return true
		}),
		damaged("slow bytes", func(x *exchange) bool {
			x.write("%sContent-Length: %d\r\n\r\n", x.answered(), len(x.body))
			first := min(20, len(x.body))
			for i := range first {
				x.write("%s", x.body[i:i+1])
				time.Sleep(time.Millisecond)
			}
			x.write("%s", x.body[first:])
			return true
		}),
		damaged("HTTP/1.0", func(x *exchange) bool {
			x.write("%s\r\n%s", strings.Replace(x.answered(), "HTTP/1.1", "HTTP/1.0", 1), x.body)
			return false
		}),
		damaged("HTTP/1.0, truncated", func(x *exchange) bool {
			x.write("%s\r\n%s", strings.Replace(x.answered(), "HTTP/1.1", "HTTP/1.0", 1), x.body[:len(x.body)/2])
			return false
		}),
		damaged("a byte order mark", func(x *exchange) bool { return x.reply(append([]byte("\xef\xbb\xbf"), x.body...)) }),
		damaged("text before the answer", func(x *exchange) bool { return x.reply(append([]byte("\n"), x.body...)) }),
		damaged("text after the answer", func(x *exchange) bool { return x.reply(append(x.body, "\n<!-- proxy -->\n"...)) }),
		damaged("the answer twice", func(x *exchange) bool {
			x.reply(x.body)
			return x.reply(x.body)
		}),
		damaged("gzip that nobody asked for", func(x *exchange) bool {
			var zipped bytes.Buffer
			w := gzip.NewWriter(&zipped)
			_, _ = w.Write(x.body)
			_ = w.Close()
			x.write("%sContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", x.answered(), zipped.Len(), zipped.Bytes())
			return true
		}),
		otherLines("answer of another event", func(lines [][]byte) [][]byte { return append(lines[1:], lines[0]) }),
		otherLines("a line is missing", func(lines [][]byte) [][]byte { return lines[1:] }),
		otherLines("a line is doubled", func(lines [][]byte) [][]byte { return append([][]byte{lines[0]}, lines...) }),
		otherLines("a line in place of another one", func(lines [][]byte) [][]byte {
			// The service's refusal of a line names no event, so no client can notice one in place of another.
			if i := slices.IndexFunc(lines, func(l []byte) bool { return bytes.Contains(l, []byte(`"event_id"`)) }); i >= 0 {
				lines[(i+1)%len(lines)] = lines[i]
			}
			return lines
		}),
		otherLines("two lines are swapped", func(lines [][]byte) [][]byte {
			lines[0], lines[len(lines)-1] = lines[len(lines)-1], lines[0]
			return lines
		}),
		otherLines("an empty line in place of one", func(lines [][]byte) [][]byte { return append([][]byte{[]byte("\n")}, lines[1:]...) }),
	}...)
}
