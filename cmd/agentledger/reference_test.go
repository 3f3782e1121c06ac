package main

import (
	"testing"

	"github.com/alecthomas/kong"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/test/clireference"
)

func TestReference(t *testing.T) {
	parser, err := kong.New(new(commands), config.ParserOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	clireference.Check(t, "agentledger", parser.Model)
}
