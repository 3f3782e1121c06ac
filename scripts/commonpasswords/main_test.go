package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/tenant/password"
)

func TestReadDigests(t *testing.T) {
	got, err := readDigests(strings.NewReader("123456\nPassword123\n123456789\npassword123\nqwertyuiop\n"))
	want := []string{password.CommonDigest("password123"), password.CommonDigest("qwertyuiop")}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestShortListIsRefused(t *testing.T) {
	var data bytes.Buffer
	if err := writeDigests(strings.NewReader("password123\n"), &data); err == nil || data.Len() > 0 {
		t.Errorf("got %v and %d bytes", err, data.Len())
	}
}
