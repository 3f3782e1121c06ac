package web_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/chromium"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/tlog"
)

// cosignedBy returns a change of answers about red's log that adds witnesses a, b and c with a quorum of two. The first
// witnesses cosigned the head, one per age, that long ago.
func cosignedBy(t *testing.T, w *world, ages *[]time.Duration) func(string, []byte) []byte {
	t.Helper()
	policy := "log " + w.State(t, ledgertest.Red).VerifierKey().String() + "\n"
	var signers []tlog.WitnessSigner
	for _, name := range []string{"a", "b", "c"} {
		s, err := tlog.NewWitnessSigner(name+".example", edkey.NewPrivate())
		if err != nil {
			t.Fatal(err)
		}
		signers = append(signers, s)
		policy += "witness " + name + " " + s.Key().String() + "\n"
	}
	policy += "group two 2 a b c\nquorum two\n"
	return func(path string, body []byte) []byte {
		switch {
		case strings.HasSuffix(path, "/red/transparency/policy"):
			return []byte(policy)
		case strings.HasSuffix(path, "/red/transparency/head"):
			var head map[string]any
			if err := json.Unmarshal(body, &head); err != nil {
				t.Error(err)
				return body
			}
			note := []byte(head["checkpoint"].(string))
			for i, age := range *ages {
				note = cosign(note, signers[i], id.InstantOf(time.Now().Add(-age)))
			}
			head["checkpoint"] = string(note)
			body, _ = json.Marshal(head)
		}
		return body
	}
}

// The page of a log shows how old its head is by the clocks of a quorum, and flags cosignatures from the future.
func TestAgeOfHeadInChromium(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", nil)
	var ages []time.Duration
	service := &tamper{next: w.handler, change: cosignedBy(t, w, &ages)}
	server := httptest.NewServer(service)
	defer server.Close()
	b, home := chromium.New(t), server.URL+"/log/red"
	const century = 100 * 365 * 24 * time.Hour
	for name, tc := range map[string]struct {
		ages []time.Duration
		want string
	}{
		"recent":                     {[]time.Duration{time.Minute, time.Minute}, "ok: 2 cosigned, a quorum of them "},
		"old":                        {[]time.Duration{5 * time.Hour, 5 * time.Hour, 5 * time.Hour}, "none: 3 cosigned, a quorum of them 5 hours ago or later, so this view may be out of date"},
		"one clock in the future":    {[]time.Duration{-century, 5 * time.Hour, 5 * time.Hour}, "none: 3 cosigned, a quorum of them 5 hours ago or later, so this view may be out of date; the cosignature of a is in the future"},
		"one that alone is recent":   {[]time.Duration{time.Minute, 5 * time.Hour}, "none: 2 cosigned, a quorum of them 5 hours ago or later"},
		"nothing but such clocks":    {[]time.Duration{-century, time.Minute}, "none: 2 cosigned, but that proves no time, so this view may be out of date; the cosignature of a is in the future"},
		"too few, one in the future": {[]time.Duration{-century}, "fail: too few witnesses"},
	} {
		ages = tc.ages
		wantMarks(t, name, visit(t, b, home), map[string]string{"witnesses": tc.want})
	}
}
