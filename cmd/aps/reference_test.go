package main

import (
	"testing"

	"github.com/agentledger/agentledger/internal/test/clireference"
)

func TestReference(t *testing.T) {
	parser, err := newParser(new(program))
	if err != nil {
		t.Fatal(err)
	}
	clireference.Check(t, "aps", parser.Model)
}
