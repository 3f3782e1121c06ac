package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/fakeservice"
)

const twoEvents = `{"event_id":"evt_1","action_kind":"tool_call","tool_name":"crm.user.get"}
{
  "event_id": "evt_2",
  "action_kind": "tool_call",
  "tool_name": "shop.refunds.create",
  "payload": {"amount_usd": 12.5, "currency": "USD"}
}`

// golden replaces what differs between runs.
func golden(s string) string {
	s = regexp.MustCompile(`[0-9a-f]{64}`).ReplaceAllString(s, "HASH")
	s = regexp.MustCompile(`evt_[0-9a-f]{32}`).ReplaceAllString(s, "EVENT")
	s = regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(s, "SERVICE")
	return regexp.MustCompile(`rate .*`).ReplaceAllString(s, "rate")
}

func TestSend(t *testing.T) {
	s := fakeservice.Start(t, 2)
	o := s.Organization(0)
	o.Rules = map[id.Tool]id.Decision{"shop.refunds.create": id.AllowWithObligation}
	args := with("send", at(s, o), as(t, o))
	got := aps(t, twoEvents, args...)
	want := "created   evt_1  #1  HASH\ncreated   evt_2  #2  HASH  tightened to allow_with_obligation by pol_1, rule rule_shop.refunds.create\n"
	if got.status != 0 || golden(got.out) != want || got.report != "" {
		t.Errorf("got %+v", got)
	}
	if o.Size() != 2 || s.Organization(1).Size() != 0 {
		t.Errorf("sizes %d, %d", o.Size(), s.Organization(1).Size())
	}
}

func TestSendSigned(t *testing.T) {
	s := fakeservice.Start(t, 1)
	o := s.Organization(0)
	signed := aps(t, twoEvents, with("sign", as(t, o), []string{"--form", "canonical"})...)
	if signed.status != 0 || strings.Count(signed.out, "\n") != 2 {
		t.Fatalf("sign: %+v", signed)
	}
	for _, want := range []string{
		`{"chain_valid":true,"event_hash":"HASH","event_id":"evt_1","sequence_num":1,"status":"created"}`,
		`{"event_id":"evt_1","status":"replayed"}`,
	} {
		got := aps(t, signed.out, with("send", at(s, o, "--json"))...)
		if first, _, _ := strings.Cut(golden(got.out), "\n"); got.status != 0 || sortedMembers(t, first) != want {
			t.Errorf("got %+v, want %s", got, want)
		}
	}
}

func sortedMembers(t *testing.T, text string) string {
	t.Helper()
	members := strings.Split(strings.Trim(text, "{}"), ",")
	slices.Sort(members)
	return "{" + strings.Join(members, ",") + "}"
}

// A lost answer or a busy service does not change the result.
func TestSendThroughFaults(t *testing.T) {
	for batch, tc := range map[string]struct {
		faults      []fakeservice.Fault
		out, report string
	}{
		"1": {[]fakeservice.Fault{fakeservice.Unavailable, fakeservice.None, fakeservice.Lost}, "created   evt_1  #1  HASH\nreplayed  evt_2\n", ""},
		"2": {[]fakeservice.Fault{fakeservice.Later, fakeservice.Lost}, "replayed  evt_1\nreplayed  evt_2\n",
			"aps: trying again in 1s: 503 Overloaded [overloaded] (request req_1)\n"},
	} {
		s := fakeservice.Start(t, 1)
		o := s.Organization(0)
		s.Next(tc.faults...)
		got := aps(t, twoEvents, with("send", at(s, o), as(t, o), []string{"--batch", batch})...)
		if got.status != 0 || golden(got.out) != tc.out || o.Size() != 2 || got.report != tc.report {
			t.Errorf("batches of %s: got %+v", batch, got)
		}
	}
}

// The results for the other events of a batch are printed before the run ends.
func TestSendEndsAfterItsBatch(t *testing.T) {
	s := fakeservice.Start(t, 1)
	o := s.Organization(0)
	events := strings.Repeat(`{"event_id":"evt","action_kind":"result","emitted_at":"2026-01-01T00:00:00Z","salt":"s","trace_id":"t"}`+"\n", 4)
	for i, name := range []string{"evt_1", "evt_2", "evt_3", "evt_4"} {
		events = strings.Replace(events, `"evt"`, `"`+name+`"`, 1)
		if i == 2 {
			s.NextLines(fakeservice.None, fakeservice.Internal)
		}
	}
	got := aps(t, events, with("send", at(s, o), as(t, o), []string{"--batch", "3"})...)
	if got.status != 2 || golden(got.out) != "created   evt_1  #1  HASH\ncreated   evt_3  #2  HASH\n" || got.report != "aps: event 2: send event: 500 Internal error (request req_1)\n" {
		t.Errorf("got %+v", got)
	}
	got = aps(t, events+"{}", with("send", at(s, o), as(t, o))...)
	if got.status != 2 || strings.Count(got.out, "\n") != 4 || !strings.HasPrefix(got.report, "aps: event 5: ") || o.Size() != 4 {
		t.Errorf("the fifth can't be signed: got %+v", got)
	}
}

// Values that have arrived are sent together, and none waits for others.
func TestGroups(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		most int
		want string
	}{
		"nothing":         {" \n", 3, ""},
		"one":             {"{}", 3, "1"},
		"lines":           {"{}\n{}\n{}\n{}\n", 3, "31"},
		"white space":     {" {}\n\n{} \n ", 3, "2"},
		"no space at all": {"{}{}[]", 2, "21"},
		"alone":           {"{}\n{}\n", 1, "11"},
		"error":           {"{}{}x{}", 5, "2!"},
		"error at once":   {"}", 5, "!"},
		"cut":             {"{}{", 5, "1!"},
	} {
		var got strings.Builder
		for group, err := range readGroups(strings.NewReader(tc.text), tc.most) {
			if err != nil {
				got.WriteString("!")
				continue
			}
			fmt.Fprint(&got, len(group))
		}
		if got.String() != tc.want {
			t.Errorf("%s: got %s, want %s", name, &got, tc.want)
		}
	}
	count, sum := 0, 0
	for group := range readGroups(strings.NewReader(strings.Repeat("[] ", inputBuffer)), 1000) {
		count, sum = count+1, sum+len(group)
	}
	if sum != inputBuffer || count > sum/1000+4 { // a read may end with a value
		t.Errorf("got %d values in %d groups", sum, count)
	}
	in, out := io.Pipe()
	next, stop := iter.Pull2(readGroups(in, 10))
	defer stop()
	for _, text := range []string{"{}\n", "{}\n{}\n"} {
		go func() { _, _ = io.WriteString(out, text) }()
		if group, err, _ := next(); err != nil || len(group) != strings.Count(text, "\n") {
			t.Errorf("got %q, %v", group, err)
		}
	}
}

func TestSendRejected(t *testing.T) {
	s := fakeservice.Start(t, 2)
	o := s.Organization(0)
	first := aps(t, `{"event_id":"evt_1","action_kind":"result"}`, with("send", at(s, o), as(t, o))...)
	if first.status != 0 {
		t.Fatalf("got %+v", first)
	}
	got := aps(t, twoEvents, with("send", at(s, o), as(t, o))...)
	want := "refused   evt_1  send event: 422 event_id was used for another event (request req_1)\ncreated   evt_2  #2  HASH\n"
	if got.status != 1 || golden(got.out) != want || !strings.HasPrefix(got.report, "aps: 1 of 2 events refused, the first: send event: 422 ") {
		t.Errorf("got %+v", got)
	}
	if n := len(s.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
	got = aps(t, twoEvents, with("send", at(s, o, "--json"), as(t, o))...)
	const wantJSON = `{"event_id":"evt_1","status":"refused","status_code":422,"error":"event_id was used for another event","request_id":"req_1"}`
	if first, _, _ := strings.Cut(got.out, "\n"); got.status != 1 || first != wantJSON {
		t.Errorf("got %+v", got)
	}
}

// A proxy's answer refuses no event, and a file of refused events can be sent again.
func TestSendKeepsWhatAProxyRefused(t *testing.T) {
	s := fakeservice.Start(t, 1)
	o := s.Organization(0)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html>default backend</html>", http.StatusNotFound)
	}))
	defer proxy.Close()
	got := aps(t, twoEvents, with("send", []string{"--url", proxy.URL, "--token", "t"}, as(t, o))...)
	want := "kept      evt_1  send event: 404 Not Found\nkept      evt_2  send event: 404 Not Found\n"
	if got.status != 1 || got.out != want || !strings.HasPrefix(got.report, "aps: 2 of 2 events not delivered and 0 refused: send the input again.") {
		t.Errorf("got %+v", got)
	}
	refused := `{"status": 422, "code": "", "message": "Signing key retired", "event": {"event_id":"evt_1","action_kind":"result"}}` + "\n"
	if got := aps(t, refused, with("send", at(s, o), as(t, o))...); got.status != 0 || !strings.HasPrefix(got.out, "created   evt_1 ") {
		t.Errorf("got %+v", got)
	}
}

func TestSendStops(t *testing.T) {
	s := fakeservice.Start(t, 2)
	mine, other := s.Organization(0), s.Organization(1)
	down := []string{"--url", "http://127.0.0.1:1", "--token", "t"}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx    context.Context
		stdin  string
		args   []string
		status int
		want   string // in the report
	}{
		"wrong token":         {t.Context(), twoEvents, with("send", []string{"--url", s.URL, "--token", "t"}, as(t, mine)), 1, "hint: APS_TOKEN (or --token) must be an ingest key that is valid now"},
		"another's token":     {t.Context(), twoEvents, with("send", at(s, other), as(t, mine)), 1, "2 of 2 events refused, the first: send event: 403 Organization mismatch for API key"},
		"unknown key":         {t.Context(), twoEvents, with("send", at(s, mine), as(t, mine), []string{"--key-id", "key_9"}), 1, "aps keygen --from FILE --proof"},
		"no token":            {t.Context(), twoEvents, with("send", []string{"--url", s.URL}, as(t, mine)), 2, "hint: set APS_TOKEN"},
		"no service":          {t.Context(), twoEvents, with("send", as(t, mine)), 2, "no service: set --url or APS_URL"},
		"no key file":         {t.Context(), twoEvents, with("send", at(s, mine), as(t, mine)[:6]), 2, "set --key-file (APS_KEY_FILE), APS_KEY, or --signer (APS_SIGNER)"},
		"no organization":     {t.Context(), twoEvents, with("send", at(s, mine)), 2, "event 1: no organization: set --org or APS_ORG"},
		"no event":            {t.Context(), " \n", with("send", at(s, mine)), 2, "no event to send"},
		"not JSON":            {t.Context(), "hello", with("send", at(s, mine)), 2, "read JSON"},
		"no file":             {t.Context(), "", with("send", at(s, mine), []string{"none.json"}), 2, "none.json"},
		"malformed event":     {t.Context(), `{"action_kind":""}`, with("send", at(s, mine), as(t, mine)), 2, "action_kind"},
		"interrupted":         {canceled, twoEvents, with("send", down, as(t, mine)), 2, "context canceled"},
		"malformed base URL":  {t.Context(), twoEvents, with("send", []string{"--url", "localhost"}), 2, `--url: expected an http or https URL, such as https://log.example, got "localhost"`},
		"batch of none":       {t.Context(), "", with("send", at(s, mine), []string{"--batch", "0"}), 2, "--batch must be 1 to 1000"},
		"batch too large":     {t.Context(), "", with("send", at(s, mine), []string{"--batch", "1001"}), 2, "--batch must be 1 to 1000"},
		"unknown flag":        {t.Context(), "", []string{"send", "--tokn", "t"}, 2, "hint: aps --help"},
		"malformed org":       {t.Context(), "", []string{"send", "--org", "mine"}, 2, "--org"},
		"no command":          {t.Context(), "", nil, 2, "hint: aps --help"},
		"malformed signature": {t.Context(), `{"sig_alg":"ed25519"}`, with("send", at(s, mine)), 1, "1 of 1 event refused"},
	} {
		got := apsContext(tc.ctx, tc.stdin, tc.args...)
		if got.status != tc.status || !strings.Contains(got.report, tc.want) || strings.Contains(got.report, mine.Token) || strings.Contains(got.report, mine.Seed) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestSendEnvironment(t *testing.T) {
	s := fakeservice.Start(t, 1)
	o := s.Organization(0)
	flags := as(t, o)
	for name, value := range map[string]string{
		"APS_URL": s.URL, "APS_TOKEN": o.Token, "APS_ORG": o.ID.String(), "APS_AGENT": string(o.Agent), "APS_KEY_ID": string(o.Key), "APS_KEY_FILE": flags[7],
	} {
		t.Setenv(name, value)
	}
	if got := aps(t, twoEvents, "send"); got.status != 0 || o.Size() != 2 {
		t.Errorf("got %+v", got)
	}
	if got := aps(t, "", "evaluate", "--tool", "a.b"); got.status != 0 {
		t.Errorf("got %+v", got)
	}
	if got := aps(t, "", "send", "--help"); got.status != 0 || strings.Contains(got.out, o.Token) {
		t.Errorf("got %+v", got)
	}
}
