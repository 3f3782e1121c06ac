package webhook_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/internal/webhook"
	"github.com/agentledger/agentledger/storage"
)

// accepts reports whether a receiver with a secret (whsec_) or a public key (whpk_) accepts a delivery, as Standard
// Webhooks describes it.
func accepts(t *testing.T, key string, header http.Header, body []byte) bool {
	t.Helper()
	text := []byte(header.Get("Webhook-Id") + "." + header.Get("Webhook-Timestamp") + "." + string(body))
	prefix, encoded, _ := strings.Cut(key, "_")
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(raw) < 24 {
		t.Fatalf("%s: %v", key, err)
	}
	for signature := range strings.SplitSeq(header.Get("Webhook-Signature"), " ") {
		version, value, _ := strings.Cut(signature, ",")
		given, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			t.Fatal(err)
		}
		mac := hmac.New(sha256.New, raw)
		mac.Write(text)
		switch {
		case prefix == "whsec" && version == "v1" && hmac.Equal(given, mac.Sum(nil)),
			prefix == "whpk" && version == "v1a" && ed25519.Verify(raw, text, given):
			return true
		}
	}
	return false
}

func (h *house) rotate(name webhook.EndpointID, overlap time.Duration) webhook.Endpoint {
	h.t.Helper()
	e, err := h.sender.RotateKeys(h.t.Context(), red, "acc_ann", name, overlap)
	if err != nil {
		h.t.Fatal(err)
	}
	return e
}

// The keys of before sign next to the new ones until the overlap ends, on every engine and after a restart.
func TestRotationOverlaps(t *testing.T) {
	eachHouse(t, func(t *testing.T, h *house) {
		address := "https://a.example/"
		first, err := h.sender.CreateEndpoint(t.Context(), red, "acc_ann", webhook.EndpointPatch{URL: &address, Events: &[]string{"approval.*"}})
		if err != nil || !strings.HasPrefix(first.Secret, "whsec_") || !first.HasSecret {
			t.Fatalf("got %+v, %v", first, err)
		}
		next := func() delivered {
			t.Helper()
			h.tell(red, 1, webhook.Message{})
			h.open(h.world)
			h.deliver()
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.calls[len(h.calls)-1]
		}
		check := func(what string, d delivered, e webhook.Endpoint, want bool) {
			t.Helper()
			for _, key := range []string{e.Secret, e.PublicKey} {
				if accepts(t, key, d.header, []byte(d.body)) != want {
					t.Errorf("%s: %s: got %v, want %v", what, key[:6], !want, want)
				}
			}
		}
		check("before", next(), first, true)
		second := h.rotate(first.ID, time.Hour)
		d := next()
		check("during, old", d, first, true)
		check("during, new", d, second, true)
		h.world.pass(time.Hour)
		d = next()
		check("after, old", d, first, false)
		check("after, new", d, second, true)
		if e := h.endpoint(red, first.ID); e.Secret != "" || len(e.Former) != 0 || e.KeyID != second.KeyID {
			t.Errorf("got %+v", e)
		}
		third, fourth := h.rotate(first.ID, time.Hour), h.rotate(first.ID, time.Hour)
		fifth := h.rotate(first.ID, time.Hour)
		d = next()
		check("at most two former: oldest", d, second, false)
		check("third", d, third, true)
		check("fourth", d, fourth, true)
		check("fifth", d, fifth, true)
	})
}

// An endpoint that an older program stored has no secret. It signs as before, and gets a secret by a rotation.
func TestEndpointWithoutSecret(t *testing.T) {
	eachHouse(t, func(t *testing.T, h *house) {
		name := h.create(red, "https://a.example/")
		stored, err := h.Engine.Get(t.Context(), red, "webhook_endpoints", "")
		if err != nil {
			t.Fatal(err)
		}
		text := string(stored.Value)
		begin := strings.Index(text, `,"secret":"`)
		if begin < 0 || strings.Contains(text, "former") {
			t.Fatalf("got %s", text)
		}
		end := begin + len(`,"secret":"`) + strings.IndexByte(text[begin+len(`,"secret":"`):], '"') + 1
		old := text[:begin] + text[end:]
		if err := h.Engine.Write(t.Context(), red, []storage.Change{{Kind: "webhook_endpoints", Value: []byte(old), If: stored.Version}}); err != nil {
			t.Fatal(err)
		}
		e := h.endpoint(red, name)
		h.tell(red, 1, webhook.Message{})
		h.deliver()
		d := h.calls[0]
		if e.HasSecret || strings.Contains(d.header.Get("Webhook-Signature"), "v1,") || !accepts(t, e.PublicKey, d.header, []byte(d.body)) {
			t.Errorf("got %+v, %s", e, d.header.Get("Webhook-Signature"))
		}
		if rotated := h.rotate(name, time.Hour); !rotated.HasSecret || rotated.Secret == "" {
			t.Errorf("got %+v", rotated)
		}
		_, _, err = webhook.SealedEndpoints().Reseal(h.Keyring(), seal.Owner{Organization: ledgertest.Organization(red)}, []byte(old))
		if err != nil {
			t.Errorf("reseal: %v", err)
		}
	})
}
