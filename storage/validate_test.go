package storage_test

import (
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

func TestContinues(t *testing.T) {
	head := storage.Head{Size: 3, Root: id.Hash{1}, Last: id.Hash{2}, LastReceived: 5, Epoch: 7, ConfigVersion: 9}
	tests := []struct {
		change string
		mutate func(*storage.Head)
		want   bool
	}{
		{"nothing", func(*storage.Head) {}, true},
		{"size", func(h *storage.Head) { h.Size++ }, false},
		{"root", func(h *storage.Head) { h.Root[31]++ }, false},
		{"epoch", func(h *storage.Head) { h.Epoch++ }, false},
		{"config version", func(h *storage.Head) { h.ConfigVersion-- }, false},
		{"last", func(h *storage.Head) { h.Last[0]++ }, true},
		{"last received", func(h *storage.Head) { h.LastReceived++ }, true},
	}
	for _, test := range tests {
		expected := head
		test.mutate(&expected)
		if got := head.Continues(expected); got != test.want {
			t.Errorf("%s changed: got %t, want %t", test.change, got, test.want)
		}
	}
}
