//go:build !race

package webhook_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/test/enginetest"
)

// Waiting deliveries stay in the store, not in memory: of 128 MiB of bodies, a sweep keeps few. The race detector
// uses memory itself, so the test does not run under it.
func TestWaitingBodiesCostNoMemory(t *testing.T) {
	const many, size = 2048, 64 << 10
	h := newHouse(t, enginetest.Pebble(t))
	h.create(red, "https://slow.example/")
	h.create(blue, "https://quick.example/")
	data, err := json.Marshal(strings.Repeat("x", size))
	if err != nil {
		t.Fatal(err)
	}
	for range many / 16 {
		h.tell(red, 16, webhook.Message{Data: data})
	}
	h.tell(blue, 1, webhook.Message{})
	letGo, began := make(chan struct{}), make(chan struct{})
	h.answer = func(address string) (egress.Answer, error) {
		if strings.Contains(address, "quick") {
			close(began)
		} else {
			<-letGo
		}
		return egress.Answer{Status: 200}, nil
	}
	before := heapInUse()
	if err := h.sender.Sweep(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	<-began
	grown := heapInUse() - before
	t.Logf("the heap grew by %d MiB", grown>>20)
	if grown > many*size/2 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	close(letGo)
	h.deliver()
}
