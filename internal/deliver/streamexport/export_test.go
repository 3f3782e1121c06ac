package streamexport_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/streamexport"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

// Each event arrives once, in order, from the chosen index on, and none of another organization.
func TestEventsArrive(t *testing.T) {
	eachHouse(t, func(t *testing.T, h *house) {
		r := newReceiver(t)
		h.append(red, 3)
		h.append(blue, 2)
		h.put(red, r.URL, fromIndex(0), func(r *streamexport.Request) { r.Headers = map[string]string{"authorization": "Bearer s3cret"} })
		h.send()
		got := r.take()
		if want := upTo(0, 4); !slices.Equal(indices(got), want) {
			t.Fatalf("got %v, want %v", indices(got), want)
		}
		if a := got[0].header.Get("Authorization"); a != "Bearer s3cret" {
			t.Errorf("authorization: got %q", a)
		}
		if o := got[0].resource["agentledger.organization_id"]; o != ledgertest.Organization(red).String() {
			t.Errorf("organization: got %v", o)
		}
		h.append(red, 2)
		h.append(blue, 2)
		h.send()
		if got, want := indices(r.take()), upTo(4, 6); !slices.Equal(got, want) {
			t.Errorf("later: got %v, want %v", got, want)
		}
		h.send()
		if got := r.take(); len(got) != 0 {
			t.Errorf("again: got %v", indices(got))
		}
		e := h.export(red)
		if e.Position.Next != 6 || e.Lag.Events != 0 || e.Sent != 6 || e.Rejected != 0 || e.Last.Status != 200 || e.Last.Failure != "" {
			t.Errorf("got %+v", e)
		}
		if _, err := h.exporter.Export(t.Context(), blue, ledgertest.Organization(blue)); !fault.Is(err, fault.NotFound) {
			t.Errorf("the other organization: got %v", err)
		}
	})
}

// More events than fit a batch are sent in several requests of bounded size.
func TestBatchesAreBounded(t *testing.T) {
	h, r := newHouse(t, enginetest.Pebble(t)), newReceiver(t)
	h.append(red, 1300)
	h.put(red, r.URL, fromIndex(0))
	h.send()
	requests := r.take()
	if got, want := indices(requests), upTo(0, 1301); !slices.Equal(got, want) {
		t.Errorf("got %d events, want %d in their order", len(got), len(want))
	}
	for i, one := range requests {
		if len(one.records) > 512 {
			t.Errorf("request %d has %d records", i, len(one.records))
		}
	}
}

// Every answer except success keeps the position, sets the status and causes a pause. The next success continues at
// the first missing event.
func TestFailures(t *testing.T) {
	status := func(n int) func(http.ResponseWriter, int) {
		return func(w http.ResponseWriter, _ int) { w.WriteHeader(n) }
	}
	eachHouse(t, func(t *testing.T, h *house) {
		r := newReceiver(t)
		h.put(red, r.URL, fromIndex(0))
		h.send()
		next := h.export(red).Position.Next
		for _, tc := range []struct {
			name   string
			answer func(http.ResponseWriter, int)
			status int
			want   string
			pause  time.Duration
		}{
			{"bad request", status(400), 400, "answered 400", 5 * time.Second},
			{"no right", status(401), 401, "answered 401", 5 * time.Second},
			{"gone", status(410), 410, "answered 410", 5 * time.Second},
			{"one event too large", status(413), 413, "answered 413", 5 * time.Second},
			{"unavailable", status(503), 503, "answered 503", 5 * time.Second},
			{"redirect", func(w http.ResponseWriter, _ int) {
				w.Header().Set("Location", "http://127.0.0.1:1/")
				w.WriteHeader(302)
			}, 302, "answered 302", 5 * time.Second},
			{"told to wait", func(w http.ResponseWriter, _ int) {
				w.Header().Set("Retry-After", "7200")
				w.WriteHeader(429)
			}, 429, "answered 429", 2 * time.Hour},
			{"no answer", func(http.ResponseWriter, int) { panic(http.ErrAbortHandler) }, 0, "no answer", 5 * time.Second},
		} {
			r.answers(tc.answer)
			h.append(red, 1)
			h.send()
			tries := len(r.take())
			e := h.export(red)
			if e.Position.Next != next || e.Last.Status != tc.status || e.Last.Failure != tc.want || e.Position.Tries != 1 || e.Lag.Events != 1 || e.Lag.Received == 0 {
				t.Errorf("%s: got %+v", tc.name, e)
			}
			pause := time.Duration(e.Position.NextAt-id.InstantOf(h.Clock())) * time.Millisecond
			if pause < tc.pause || pause > tc.pause+tc.pause/5 {
				t.Errorf("%s: the pause is %v, want %v and a fifth at most", tc.name, pause, tc.pause)
			}
			h.send()
			if again := len(r.take()); tries == 0 || again != 0 {
				t.Errorf("%s: %d tries, and %d in the pause", tc.name, tries, again)
			}
			if behind := h.exporter.FurthestBehind(10); !slices.Equal(behind, []id.Tenant{red}) || len(h.exporter.FurthestBehind(0)) > 0 {
				t.Errorf("%s: %v are behind", tc.name, behind)
			}
			r.answers(nil)
			h.Pass(pause)
			h.send()
			if behind := h.exporter.FurthestBehind(10); len(behind) > 0 {
				t.Errorf("%s: %v are behind at the end", tc.name, behind)
			}
			if got, want := indices(r.take()), []int64{int64(next)}; !slices.Equal(got, want) {
				t.Errorf("%s: later: got %v, want %v", tc.name, got, want)
			}
			if e := h.export(red); e.Position.Tries != 0 || e.Position.FailingSince != 0 || e.Lag.Events != 0 {
				t.Errorf("%s: at the end: got %+v", tc.name, e)
			}
			next++
		}
	})
}

// The pauses grow to an hour and stay there: no number of failures ends an export or skips an event.
func TestFailuresForEver(t *testing.T) {
	h, r := newHouse(t, enginetest.Pebble(t)), newReceiver(t)
	h.append(red, 2)
	r.answers(func(w http.ResponseWriter, _ int) { w.WriteHeader(403) })
	h.put(red, r.URL, fromIndex(0))
	began := id.InstantOf(h.Clock())
	for i := range 20 {
		h.send()
		if got := len(r.take()); got != 1 {
			t.Fatalf("try %d: got %d requests", i, got)
		}
		e := h.export(red)
		if e.Position.Tries != i+1 || e.Position.FailingSince != began {
			t.Errorf("try %d: got %+v", i, e.Position)
		}
		pause := time.Duration(e.Position.NextAt-id.InstantOf(h.Clock())) * time.Millisecond
		if i >= 5 && (pause < time.Hour || pause > time.Hour+12*time.Minute) {
			t.Errorf("try %d: the pause is %v", i, pause)
		}
		h.Pass(pause)
	}
	r.answers(nil)
	h.send()
	if got, want := indices(r.take()), upTo(0, 3); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A receiver that rejects large requests gets small ones.
func TestSmallerRequests(t *testing.T) {
	h, r := newHouse(t, enginetest.Pebble(t)), newReceiver(t)
	h.append(red, 20)
	r.answers(func(w http.ResponseWriter, records int) {
		if records > 4 {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
	})
	h.put(red, r.URL, fromIndex(0))
	h.send()
	taken := slices.DeleteFunc(r.take(), func(one request) bool { return len(one.records) > 4 })
	if got, want := indices(taken), upTo(0, 21); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Records that a receiver rejects in a successful answer are counted and not sent again.
func TestPartialSuccess(t *testing.T) {
	for _, encoding := range []streamexport.Encoding{streamexport.EncodingProtobuf, streamexport.EncodingJSON} {
		h, r := newHouse(t, enginetest.Pebble(t)), newReceiver(t)
		r.answers(func(w http.ResponseWriter, records int) {
			if encoding == streamexport.EncodingJSON {
				fmt.Fprint(w, `{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"no","more":1}}`)
				return
			}
			fmt.Fprint(w, "\x0a\x02\x08\x02") // ExportLogsServiceResponse with two rejected records
		})
		h.append(red, 4)
		h.put(red, r.URL, fromIndex(0), func(r *streamexport.Request) { r.Encoding = encoding })
		h.send()
		if got, want := indices(r.take()), upTo(0, 5); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", encoding, got, want)
		}
		if e := h.export(red); e.Sent != 3 || e.Rejected != 2 || e.Position.Next != 5 || e.Last.Failure != "" {
			t.Errorf("%s: got %+v", encoding, e)
		}
	}
}

// A process that dies before or after any write repeats events and skips none.
func TestDeaths(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 0; ; n++ {
			h, r := newHouse(t, enginetest.Pebble(t)), newReceiver(t)
			h.append(red, 3)
			h.put(red, r.URL, fromIndex(0))
			store := &enginetest.Mortal{Engine: h.Engine}
			store.DieAt(n, after)
			h.open(store)
			h.tolerantSend()
			h.open(h.Engine)
			h.Pass(time.Minute) // the pause of an entry that could not be settled
			h.send()
			h.append(red, 1)
			h.send()
			got := indices(r.take())
			distinct := slices.Compact(slices.Sorted(slices.Values(got)))
			if want := upTo(0, 5); !slices.Equal(distinct, want) {
				t.Fatalf("death at write %d, after it %v: got %v, want %v at least once", n, after, got, want)
			}
			if !store.Dead() {
				if n < 3 {
					t.Errorf("only %d writes were tried", n)
				}
				break
			}
		}
	}
}

// Where an export continues when it is set again.
func TestWherePutGoesOn(t *testing.T) {
	eachHouse(t, func(t *testing.T, h *house) {
		r := newReceiver(t)
		h.append(red, 3)
		h.put(red, r.URL)
		h.send()
		if got := indices(r.take()); !slices.Equal(got, []int64{3}) { // the statement of the put itself
			t.Errorf("a new one: got %v", got)
		}
		r.answers(func(w http.ResponseWriter, _ int) { w.WriteHeader(500) })
		h.append(red, 1)
		h.send()
		r.take()
		if behind := h.readGauge(t, "agentledger_stream_export_lag_events"); behind != 1 {
			t.Errorf("got %v events behind, want 1", behind)
		}
		other := newReceiver(t)
		h.put(red, other.URL, func(r *streamexport.Request) { r.Format = streamexport.FormatCloudEvents })
		h.send() // immediately, although the first receiver's pause is not over
		if got := indices(other.take()); !slices.Equal(got, []int64{4, 5}) {
			t.Errorf("another receiver: got %v", got)
		}
		h.put(red, other.URL, fromIndex(1))
		h.send()
		if got, want := indices(other.take()), upTo(1, 7); !slices.Equal(got, want) {
			t.Errorf("an index: got %v, want %v", got, want)
		}
		h.put(red, other.URL, func(r *streamexport.Request) { r.Paused = true })
		h.append(red, 2)
		h.send()
		if behind := h.readGauge(t, "agentledger_stream_export_lag_events"); behind != 0 {
			t.Errorf("a paused export is %v events behind", behind)
		}
		h.put(red, other.URL, func(r *streamexport.Request) { r.Paused, r.From.Newest = false, true })
		h.send()
		if got := indices(other.take()); !slices.Equal(got, []int64{10}) {
			t.Errorf("paused, then from now: got %v", got)
		}
		if got := r.take(); len(got) != 0 {
			t.Errorf("the first receiver got %v", indices(got))
		}
	})
}

// Changes are recorded as events, without addresses and headers. Setting the same value records none.
func TestStatements(t *testing.T) {
	eachHouse(t, func(t *testing.T, h *house) {
		r := newReceiver(t)
		secret := func(r *streamexport.Request) { r.Headers = map[string]string{"X-Key": "s3cret"} }
		h.put(red, r.URL+"/s3cret", secret)
		h.put(red, r.URL+"/s3cret", secret)
		h.put(red, r.URL+"/s3cret", func(r *streamexport.Request) { r.Payloads = true })
		h.put(red, r.URL+"/s3cret", func(r *streamexport.Request) { r.Payloads = true; r.Paused = true }, fromIndex(0))
		if err := h.exporter.Delete(t.Context(), red, "acc_bob"); err != nil {
			t.Fatal(err)
		}
		want := []string{
			`ledger_stream_export_changed by acc_ann {"format":"ocsf","from":0,"names":["url","headers","format","encoding","active"],"payloads":false}`,
			`ledger_stream_export_changed by acc_ann {"format":"ocsf","names":["payloads"],"payloads":true}`,
			`ledger_stream_export_changed by acc_ann {"format":"ocsf","names":["active"],"payloads":true}`,
			`ledger_stream_export_deleted by acc_bob {}`,
		}
		if got := h.said(red); !slices.Equal(got, want) {
			t.Errorf("got %s\nwant %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if err := h.exporter.Delete(t.Context(), red, "acc_bob"); !fault.Is(err, fault.NotFound) {
			t.Errorf("again: got %v", err)
		}
		h.append(red, 1)
		h.Pass(time.Hour)
		h.send()
		if got := r.take(); len(got) != 0 {
			t.Errorf("after the end: got %v", indices(got))
		}
		for _, kind := range []string{"stream_export", "stream_export_position", "stream_export_status", "stream_export_test"} {
			left, err := h.Engine.Scan(t.Context(), red, storage.Kind(kind), "", "", 10)
			if err != nil || len(left) > 0 {
				t.Errorf("%s: got %v, %v", kind, left, err)
			}
		}
		if got := h.said(blue); len(got) != 0 {
			t.Errorf("the other organization: got %v", got)
		}
	})
}

func TestRefusals(t *testing.T) {
	h, r := newHouse(t, enginetest.Pebble(t)), newReceiver(t)
	many := map[string]string{}
	for i := range 17 {
		many[fmt.Sprint("X-", i)] = "v"
	}
	own := "headers must not name a field twice, nor one that the request sets itself"
	h.put(blue, r.URL, func(r *streamexport.Request) { r.Headers = map[string]string{"X-Key": "s3cret"} })
	big := id.Index(1000)
	for _, tc := range []struct {
		change func(*streamexport.Request)
		want   string
	}{
		{func(r *streamexport.Request) { r.URL = "" }, "url must be a public https address of at most 2048 bytes"},
		{func(r *streamexport.Request) { r.URL = "http://10.0.0.1/" }, "url must be a public https address of at most 2048 bytes"},
		{func(r *streamexport.Request) { r.URL += strings.Repeat("/", 2048) }, "url must be a public https address of at most 2048 bytes"},
		{func(r *streamexport.Request) { r.Format = "" }, "format must be ocsf, cloudevents or genai-1.41"},
		{func(r *streamexport.Request) { r.Encoding = "xml" }, "encoding must be protobuf or json"},
		{func(r *streamexport.Request) { r.Headers = many }, "headers must have at most 16 members"},
		{func(r *streamexport.Request) { r.Headers = map[string]string{"a b": "v"} }, "headers must have names of HTTP header fields, at most 128 bytes each"},
		{func(r *streamexport.Request) { r.Headers = map[string]string{"host": "v"} }, own},
		{func(r *streamexport.Request) { r.Headers = map[string]string{"Proxy-Authorization": "v"} }, own},
		{func(r *streamexport.Request) { r.Headers = map[string]string{"x-a": "v", "X-A": "v"} }, own},
		{func(r *streamexport.Request) { r.Headers = map[string]string{"X-A": "v\r\nX-B: w"} }, "headers must have values of HTTP header fields, at most 4096 bytes each"},
		{func(r *streamexport.Request) { r.URL = "https://other.example/" }, "headers are required when url goes to another host"},
		{func(r *streamexport.Request) { r.From.Index = &big }, "from must not be larger than the ledger, which has 1 event"},
	} {
		wish := streamexport.Request{URL: r.URL, Format: streamexport.FormatOCSF}
		tc.change(&wish)
		err := h.exporter.Put(t.Context(), blue, "acc_ann", wish)
		if !fault.Is(err, fault.Invalid) || fault.Of(err).Message != tc.want {
			t.Errorf("got %v, want %s", err, tc.want)
		}
	}
	if got := len(h.said(blue)); got != 1 {
		t.Errorf("got %d statements, want 1", got)
	}
	if err := h.exporter.Test(t.Context(), red); !fault.Is(err, fault.NotFound) {
		t.Errorf("a test without an export: got %v", err)
	}
}

// A test delivery is attempted once, even during a pause, and does not move the position.
func TestTestDelivery(t *testing.T) {
	eachHouse(t, func(t *testing.T, h *house) {
		r := newReceiver(t)
		h.put(red, r.URL)
		h.send()
		r.take()
		r.answers(func(w http.ResponseWriter, _ int) { w.WriteHeader(403) })
		h.append(red, 1)
		h.send()
		for _, want := range []streamexport.Try{{Status: 403, Failure: "answered 403"}, {Status: 200}} {
			h.Pass(time.Millisecond)
			r.take()
			if want.Status == 200 {
				r.answers(nil)
			}
			if err := h.exporter.Test(t.Context(), red); err != nil {
				t.Fatal(err)
			}
			h.send()
			got := r.take()
			if len(got) != 2 || got[0].records[0].EventName != "agentledger.test" || got[1].records[0].EventName != "agentledger.event" {
				t.Errorf("got %v", got)
			}
			e := h.export(red)
			want.At = e.TestAskedAt
			if e.Test != want {
				t.Errorf("got %+v, want %+v", e.Test, want)
			}
		}
		h.send()
		if got := r.take(); len(got) != 0 {
			t.Errorf("again: got %v", got)
		}
	})
}

// Receivers that hang use only their own organization's slots.
func TestSlowReceiverDelaysNoOther(t *testing.T) {
	h, slow, quick := newHouse(t, enginetest.Pebble(t)), newReceiver(t), newReceiver(t)
	release, called := make(chan struct{}), make(chan struct{}, 1)
	slow.answers(func(http.ResponseWriter, int) { called <- struct{}{}; <-release })
	h.append(red, 1)
	h.append(blue, 1)
	h.put(red, slow.URL, fromIndex(0))
	h.sweep()
	<-called
	arrived := make(chan struct{}, 1)
	quick.answers(func(http.ResponseWriter, int) { arrived <- struct{}{} })
	h.put(blue, quick.URL, fromIndex(0))
	h.sweep()
	<-arrived
	close(release)
	h.settle()
	if got, want := indices(quick.take()), upTo(0, 2); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
