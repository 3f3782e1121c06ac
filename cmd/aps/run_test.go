package main

import (
	"context"
	"io"
	"reflect"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/agentledger/agentledger/cmd/aps/acts"
	"github.com/agentledger/agentledger/cmd/aps/people"
)

// Each command has a method Run with parameters that runCommand knows.
func TestCommandsRun(t *testing.T) {
	var p program
	parser, err := kong.New(&p, kong.Writers(io.Discard, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	known := map[reflect.Type]bool{
		reflect.TypeFor[func(*streams) error]():                                    true,
		reflect.TypeFor[func(context.Context, *streams) error]():                   true,
		reflect.TypeFor[func(context.Context, *streams, *people.Terminal) error](): true,
		reflect.TypeFor[func(*people.Terminal) error]():                            true,
		reflect.TypeFor[func(context.Context, *people.Terminal) error]():           true,
		reflect.TypeFor[func(context.Context, *acts.Streams) error]():              true,
	}
	leaves := parser.Model.Leaves(false)
	for _, leaf := range leaves {
		run := leaf.Target.Addr().MethodByName("Run")
		if !run.IsValid() || !known[run.Type()] {
			t.Errorf("%s: got %v", leaf.Path(), run)
		}
	}
	if len(leaves) < 30 {
		t.Errorf("got %d commands", len(leaves))
	}
}
