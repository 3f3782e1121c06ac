package client

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/agentledger/agentledger/edkey"
)

func TestCheckWebhook(t *testing.T) {
	private := edkey.NewPrivate()
	key := "whpk_" + private.Public().String()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	body := []byte(`{"type":"approval.approved"}`)
	sign := func(signer edkey.Private, id string, at time.Time) http.Header {
		timestamp := strconv.FormatInt(at.Unix(), 10)
		signature := signer.Sign([]byte(id + "." + timestamp + "." + string(body)))
		return http.Header{
			"Webhook-Id": {id}, "Webhook-Timestamp": {timestamp},
			"Webhook-Signature": {"v1,AAAA v1a," + base64.StdEncoding.EncodeToString(signature[:])},
		}
	}
	for name, tt := range map[string]struct {
		header http.Header
		body   []byte
		want   bool
	}{
		"good":              {sign(private, "msg_1", now), body, true},
		"five minutes old":  {sign(private, "msg_1", now.Add(-5*time.Minute)), body, true},
		"replayed later":    {sign(private, "msg_1", now.Add(-5*time.Minute-time.Second)), body, false},
		"in the future":     {sign(private, "msg_1", now.Add(6*time.Minute)), body, false},
		"other key":         {sign(edkey.NewPrivate(), "msg_1", now), body, false},
		"another body":      {sign(private, "msg_1", now), []byte(`{}`), false},
		"without id":        {sign(private, "", now), body, false},
		"without signature": {http.Header{"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {strconv.FormatInt(now.Unix(), 10)}}, body, false},
		"no headers":        {http.Header{}, body, false},
	} {
		id, err := CheckWebhook(key, tt.header, tt.body, now)
		if (err == nil) != tt.want || tt.want && id != "msg_1" || err != nil && !errors.Is(err, ErrWebhook) {
			t.Errorf("%s: got %q, %v", name, id, err)
		}
	}
	moved := sign(private, "msg_1", now.Add(-time.Hour))
	moved.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	if _, err := CheckWebhook(key, moved, body, now); !errors.Is(err, ErrWebhook) {
		t.Errorf("with another timestamp: got %v", err)
	}
	for _, bad := range []string{"", private.Public().String(), "whpk_", "whpk_AAAA", "whsec_" + private.Public().String()} {
		if _, err := CheckWebhook(bad, sign(private, "msg_1", now), body, now); err == nil {
			t.Errorf("key %q: accepted", bad)
		}
	}
}
