package rekey_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/mail"
	"github.com/agentledger/agentledger/internal/operate/rekey"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

// postbox collects the messages that an outbox sends.
type postbox struct {
	mu   sync.Mutex
	sent map[string]int
	hold func() // called while a message is being sent
}

func (p *postbox) Send(_ context.Context, m mail.Message) error {
	p.hold()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent[m.To+" "+m.Text]++
	return nil
}

// Mails of organizations and of accounts that wait while the master key changes are sent once, using only the newest
// master key.
func TestWaitingMails(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		s := ledgertest.On(t, open(t))
		first, second := seal.NewKey(), seal.NewKey()
		outbox := func(k *seal.Keyring, p *postbox) *mail.Outbox {
			return mail.New(mail.Options{Records: s.Engine, Keyring: k, Transport: p, Clock: s.Clock})
		}
		p := &postbox{sent: map[string]int{}, hold: func() {}}
		before := outbox(ring(t, first), p)
		tenants := []id.Tenant{ledgertest.Red, ledgertest.Blue, id.Service}
		for _, tenant := range tenants[:2] {
			s.Found(t, tenant)
		}
		for _, tenant := range tenants {
			changes, err := before.WriteMessage(t.Context(), tenant, "letter", mail.Message{To: "ann@example.com", Subject: "s", Text: fmt.Sprint(tenant)})
			if err == nil {
				err = s.Engine.Write(t.Context(), tenant, changes)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		r := &rekey.Rekeyer{Store: s.Engine, Ledgers: s.Ledgers, Keyring: ring(t, second, first), Texts: rekey.SealedTexts()}
		for _, want := range []int{3, 0} {
			if n, err := r.Run(t.Context()); n != want || err != nil {
				t.Fatalf("got %d, %v, want %d", n, err, want)
			}
		}
		logger := slog.New(slog.NewTextHandler(t.Output(), nil))
		over, stop := context.WithCancel(t.Context())
		stop()
		send := func(o *mail.Outbox) {
			if err := o.Sweep(t.Context(), logger); err != nil {
				t.Fatal(err)
			}
			o.Run(over, logger) // returns when no delivery is running
		}
		// The next change of keys comes while the mails are being sent.
		third := seal.NewKey()
		var once sync.Once
		p.hold = func() {
			once.Do(func() {
				r := &rekey.Rekeyer{Store: s.Engine, Ledgers: s.Ledgers, Keyring: ring(t, third, second), Texts: rekey.SealedTexts()}
				if n, err := r.Run(t.Context()); n != 3 || err != nil {
					t.Errorf("meanwhile: got %d, %v", n, err)
				}
			})
		}
		send(outbox(ring(t, third, second), p))
		send(outbox(ring(t, third), p))
		for _, tenant := range tenants {
			if n := p.sent["ann@example.com "+fmt.Sprint(tenant)]; n != 1 {
				t.Errorf("the mail of %d was sent %d times", tenant, n)
			}
			left, err := s.Engine.Scan(t.Context(), tenant, "mail", "", "", 9)
			if err != nil || len(left) != 0 {
				t.Errorf("left of %d: %d, %v", tenant, len(left), err)
			}
		}
	})
}

// A mail that cannot be opened is left unchanged and reported.
func TestMailOfAnUnknownKey(t *testing.T) {
	s := ledgertest.New(t)
	s.Found(t, ledgertest.Red)
	o := mail.New(mail.Options{Records: s.Engine, Keyring: ring(t, seal.NewKey()), Clock: s.Clock})
	changes, err := o.WriteMessage(t.Context(), ledgertest.Red, "letter", mail.Message{To: "ann@example.com", Subject: "s", Text: "t"})
	if err == nil {
		err = s.Engine.Write(t.Context(), ledgertest.Red, changes)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := &rekey.Rekeyer{Store: s.Engine, Ledgers: s.Ledgers, Keyring: ring(t, seal.NewKey()), Texts: rekey.SealedTexts()}
	if n, err := r.Run(t.Context()); n != 0 || err == nil {
		t.Errorf("got %d, %v", n, err)
	}
}
