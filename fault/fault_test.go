package fault_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/agentledger/agentledger/fault"
)

func TestOf(t *testing.T) {
	inner := fault.Wrap(fault.Conflict, "taken", io.EOF)
	outer := fault.Wrap(fault.Unavailable, "later", fmt.Errorf("step: %w", inner))
	tests := []struct {
		name    string
		err     error
		kind    fault.Kind
		message string
	}{
		{"a plain error is internal", errors.New("secret cause"), fault.Internal, "Internal error"},
		{"itself", inner, fault.Conflict, "taken"},
		{"wrapped", fmt.Errorf("step: %w", inner), fault.Conflict, "taken"},
		{"the outermost error counts", outer, fault.Unavailable, "later"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := fault.Of(tt.err); got.Kind != tt.kind || got.Message != tt.message {
				t.Errorf("got %d %q, want %d %q", got.Kind, got.Message, tt.kind, tt.message)
			}
			if !fault.Is(tt.err, tt.kind) {
				t.Errorf("Is(%d) is false", tt.kind)
			}
		})
	}
	if !errors.Is(outer, io.EOF) {
		t.Error("errors.Is does not find the cause")
	}
	if fault.Is(nil, fault.Internal) {
		t.Error("Is(nil, Internal): got true")
	}
}

func TestErrorIncludesTheCause(t *testing.T) {
	if got, want := fault.Wrap(fault.Invalid, "bad", io.EOF).Error(), "bad: EOF"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := fault.New(fault.Invalid, "bad").Error(), "bad"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
