package main

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/fakeservice"
)

func TestDid(t *testing.T) {
	s := fakeservice.Start(t, 2)
	mine, other := s.Organization(0), s.Organization(1)
	const web = "did:web:log.example:v1:public:agents:agt_1"
	for name, tc := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"agent":          {[]string{"did", "agt_1"}, 0, `  "id": "` + mine.DID() + `",`},
		"other agent":    {[]string{"did", "get", "agt_2"}, 0, `  "id": "` + other.DID() + `",`},
		"did:key":        {[]string{"did", mine.DID()}, 0, `  "id": "` + mine.DID() + `",`},
		"did:web":        {[]string{"did", web}, 0, `  "id": "` + web + `",`},
		"JSON":           {[]string{"did", web, "--json"}, 0, `"id":"` + web + `",`},
		"unknown agent":  {[]string{"did", "agt_9"}, 1, "404 Not found"},
		"unknown method": {[]string{"did", "did:example:1"}, 1, "404 Not found"},
	} {
		got := aps(t, "", append(tc.args, "--url", s.URL)...)
		if got.status != tc.status || !strings.Contains(got.out+got.report, tc.want) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	before := len(s.Requests())
	t.Setenv("APS_URL", s.URL)
	got := aps(t, "", "did", "key", "O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik=")
	if got.status != 0 || !strings.Contains(got.out, `"did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp"`) || len(s.Requests()) != before {
		t.Errorf("offline: got %+v", got)
	}
	for _, key := range []string{"", "QUJD", strings.Repeat("A", 43) + "="} {
		if got := aps(t, "", "did", "key", key); got.status != 2 {
			t.Errorf("key %q: got %+v", key, got)
		}
	}
}
