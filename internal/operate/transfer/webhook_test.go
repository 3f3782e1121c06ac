package transfer_test

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// hooked is a receiver of webhooks that stores the newest delivery to each address.
type hooked struct {
	mu  sync.Mutex // deliveries are concurrent
	got map[string]signedBody
}

type signedBody struct {
	header http.Header
	body   []byte
}

func (*hooked) CheckURL(string) error { return nil }

func (h *hooked) Post(_ context.Context, address string, header http.Header, body []byte) (egress.Answer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got[address] = signedBody{header, body}
	return egress.Answer{Status: 200}, nil
}

// isSignedBy reports whether a delivery has a signature by a secret (whsec_) or a key (whpk_) of Standard Webhooks.
func (s signedBody) isSignedBy(t *testing.T, key string) bool {
	t.Helper()
	prefix, encoded, _ := strings.Cut(key, "_")
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(raw) != 32 {
		t.Fatalf("key of %d bytes, %v", len(raw), err)
	}
	text := slices.Concat([]byte(s.header.Get("Webhook-Id")+"."+s.header.Get("Webhook-Timestamp")+"."), s.body)
	mac := hmac.New(sha256.New, raw)
	mac.Write(text)
	for signature := range strings.FieldsSeq(s.header.Get("Webhook-Signature")) {
		version, value, _ := strings.Cut(signature, ",")
		given, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			t.Fatal(err)
		}
		if prefix == "whsec" && version == "v1" && hmac.Equal(given, mac.Sum(nil)) ||
			prefix == "whpk" && version == "v1a" && ed25519.Verify(raw, text, given) {
			return true
		}
	}
	return false
}

// hooks returns the webhook sender of a running server.
func (h *house) hooks(to *hooked) *webhook.Sender {
	return webhook.New(webhook.Options{Records: h.engine, Keyring: h.keyring, Caller: to, Events: h.systemEvents, Clock: h.clock})
}

// notify sends one notice to the endpoints of an organization and one callback, and returns both deliveries.
func (h *house) notify(to *hooked, r *resident) (notice, callback signedBody) {
	t := h.t.(*testing.T)
	t.Helper()
	to.got = map[string]signedBody{}
	sender, data := h.hooks(to), []byte(`{}`)
	changes, err := sender.WriteDelivery(t.Context(), r.Tenant, h.state(r.Tenant).Identity().Organization,
		webhook.Message{Type: "approval.pending", Data: data}, webhook.Message{Type: "approval.pending", Data: data, URL: "https://agent.example/"})
	if err == nil {
		err = h.engine.Write(t.Context(), r.Tenant, changes)
	}
	if err == nil {
		err = sender.Sweep(t.Context(), slog.New(slog.NewTextHandler(t.Output(), nil)))
	}
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	sender.Run(ended, slog.New(slog.DiscardHandler))
	return to.got["https://hooks.example/"], to.got["https://agent.example/"]
}

// The secrets and keys of webhooks, including former ones, move with their organization to another store: receivers
// change nothing. The export contains them sealed, and those of no other organization.
func TestWebhookSecretsMove(t *testing.T) {
	for name, stores := range map[string][2]func(testing.TB) storagetest.Engine{
		"to the second engine": {pebble, postgres}, "to the first engine": {postgres, pebble},
	} {
		t.Run(name, func(t *testing.T) {
			to := &hooked{}
			here := newHouse(t, stores[0](t), newKeyring(t))
			here.start()
			red, blue := here.found("red", "ann@example.com", 1), here.found("blue", "bob@example.com", 1)
			address, types := "https://hooks.example/", []string{"approval.*"}
			var keys []string    // of red: each former one and its successor
			var secrets []string // of both
			for _, r := range []*resident{red, blue} {
				here.notify(to, r) // generates the key for callbacks
				first, err := here.hooks(to).CallbackKey(t.Context(), r.Tenant)
				if err != nil {
					t.Fatal(err)
				}
				made, err := here.hooks(to).CreateEndpoint(t.Context(), r.Tenant, "acc_ann", webhook.EndpointPatch{URL: &address, Events: &types})
				if err != nil {
					t.Fatal(err)
				}
				rotated, err := here.hooks(to).RotateKeys(t.Context(), r.Tenant, "acc_ann", made.ID, time.Hour)
				if err != nil {
					t.Fatal(err)
				}
				second, err := here.hooks(to).RotateCallbackKey(t.Context(), r.Tenant, "acc_ann", time.Hour)
				if err != nil {
					t.Fatal(err)
				}
				if r == red {
					keys = []string{made.Secret, rotated.Secret, made.PublicKey, rotated.PublicKey, first.PublicKey, second.PublicKey}
				}
				secrets = append(secrets, made.Secret, rotated.Secret)
			}
			here.stop()
			here.fsck()
			dir := filepath.Join(t.TempDir(), "export")
			here.export(dir, "red")
			for _, secret := range secrets {
				raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
				if err != nil {
					t.Fatal(err)
				}
				for _, form := range []string{strings.TrimPrefix(secret, "whsec_"), string(raw)} {
					if found := filesWith(t, dir, form); len(found) > 0 {
						t.Errorf("%v have a secret in clear text", found)
					}
				}
			}

			there := newHouse(t, stores[1](t), here.keyring)
			there.imports(dir, "red")
			there.now = here.now
			there.fsck()
			there.start()
			defer there.stop()
			notice, callback := there.notify(to, red)
			for i, key := range keys {
				d := notice
				if i >= 4 {
					d = callback
				}
				if !d.isSignedBy(t, key) {
					t.Errorf("key %d does not sign in the other store: %v", i, d.header)
				}
			}
			there.now = there.now.Add(time.Hour)
			notice, callback = there.notify(to, red)
			for i, key := range keys {
				d, former := notice, i%2 == 0
				if i >= 4 {
					d = callback
				}
				if d.isSignedBy(t, key) == former {
					t.Errorf("key %d after the overlap: got %v", i, former)
				}
			}
			if all, err := there.hooks(to).Endpoints(t.Context(), blue.Tenant, id.Organization{}); err != nil || len(all) != 0 {
				t.Errorf("the other organization's: got %+v, %v", all, err)
			}
		})
	}
}
