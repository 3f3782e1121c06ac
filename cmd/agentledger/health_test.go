package main

import (
	"testing"
	"time"
)

func TestOldestAppendIsACondition(t *testing.T) {
	tests := []struct {
		age  time.Duration
		want string
	}{
		{0, ""},
		{5 * time.Second, ""},
		{12*time.Second + 900*time.Millisecond, "the oldest append has been out for 12 s"},
	}
	for _, test := range tests {
		if got := appendDelayReason(test.age); got != test.want {
			t.Errorf("an append out for %v: got %q, want %q", test.age, got, test.want)
		}
	}
}
