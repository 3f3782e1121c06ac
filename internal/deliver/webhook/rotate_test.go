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

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

// accepts reports whether a receiver with a secret (whsec_) or a public key (whpk_) accepts a delivery, according to
// Standard Webhooks.
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

// The previous keys sign in addition to the new ones until the overlap ends, on every engine and after a restart.
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

// The former key signs callbacks next to the new one until the overlap ends, on every engine and after a restart. A
// record that an older program stored has no former keys and is read as before.
func TestCallbackKeyRotation(t *testing.T) {
	eachHouse(t, func(t *testing.T, h *house) {
		next := func() delivered {
			t.Helper()
			h.tell(red, 1, webhook.Message{URL: "https://agent.example/"})
			h.open(h.world)
			h.deliver()
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.calls[len(h.calls)-1]
		}
		check := func(what string, d delivered, k webhook.CallbackKey, want bool) {
			t.Helper()
			if accepts(t, k.PublicKey, d.header, []byte(d.body)) != want {
				t.Errorf("%s: got %v, want %v", what, !want, want)
			}
		}
		rotate := func(overlap time.Duration) webhook.CallbackKey {
			t.Helper()
			k, err := h.sender.RotateCallbackKey(t.Context(), red, "acc_ann", overlap)
			if err != nil {
				t.Fatal(err)
			}
			return k
		}
		stored := func() storage.Record {
			t.Helper()
			r, err := h.Engine.Get(t.Context(), red, "webhook_key", "")
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		d := next()
		first, err := h.sender.CallbackKey(t.Context(), red)
		if err != nil || strings.Contains(string(stored().Value), "former") { // the form that older programs store
			t.Fatalf("got %s, %v", stored().Value, err)
		}
		check("before", d, first, true)
		second := rotate(time.Hour)
		d = next()
		check("during, old", d, first, true)
		check("during, new", d, second, true)
		if got := d.header.Get("Webhook-Key-Id"); got != second.KeyID {
			t.Errorf("got key id %s, want %s", got, second.KeyID)
		}
		if strings.Contains(d.header.Get("Webhook-Signature"), "v1,") {
			t.Errorf("a callback has a signature by a shared secret: %s", d.header.Get("Webhook-Signature"))
		}
		owner := seal.Owner{Organization: ledgertest.Organization(red)}
		if _, changed, err := webhook.SealedKey().Reseal(h.Keyring(), owner, stored().Value); err != nil || changed {
			t.Errorf("reseal: got %v, %v", changed, err)
		}
		newer, err := seal.NewKeyring(seal.NewKey())
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := webhook.SealedKey().Reseal(newer, owner, stored().Value); err == nil {
			t.Error("opened with another master key")
		}
		h.world.pass(time.Hour)
		d = next()
		check("after, old", d, first, false)
		check("after, new", d, second, true)
		third, fourth, fifth := rotate(time.Hour), rotate(time.Hour), rotate(time.Hour)
		d = next()
		check("at most two former keys: oldest", d, second, false)
		check("third", d, third, true)
		check("fourth", d, fourth, true)
		check("fifth", d, fifth, true)
		sixth := rotate(0)
		d = next()
		check("without an overlap, old", d, fifth, false)
		check("without an overlap, new", d, sixth, true)
		if k, err := h.sender.CallbackKey(t.Context(), blue); err != nil || k.PublicKey != "" {
			t.Errorf("the other organization: got %+v, %v", k, err)
		}
	})
}

// A rotation before the first callback generates the key that signs it.
func TestCallbackKeyBeforeFirstCallback(t *testing.T) {
	eachHouse(t, func(t *testing.T, h *house) {
		key, err := h.sender.RotateCallbackKey(t.Context(), red, "acc_ann", time.Hour)
		if err != nil || len(key.Former) != 0 {
			t.Fatalf("got %+v, %v", key, err)
		}
		h.tell(red, 1, webhook.Message{URL: "https://agent.example/"})
		h.deliver()
		if d := h.calls[0]; !accepts(t, key.PublicKey, d.header, []byte(d.body)) {
			t.Errorf("got %v", d.header)
		}
		for _, overlap := range []time.Duration{-1, webhook.MaxOverlap + 1} {
			if _, err := h.sender.RotateCallbackKey(t.Context(), red, "acc_ann", overlap); !fault.Is(err, fault.Invalid) {
				t.Errorf("overlap %v: got %v", overlap, err)
			}
		}
	})
}
