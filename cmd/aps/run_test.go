package main

import (
	"context"
	"reflect"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/agentledger/agentledger/cmd/aps/acts"
	"github.com/agentledger/agentledger/cmd/aps/people"
)

// Each command has a method Run whose parameters runProgram binds.
func TestCommandsRun(t *testing.T) {
	var p program
	parser, err := newParser(&p)
	if err != nil {
		t.Fatal(err)
	}
	bound := map[reflect.Type]bool{
		reflect.TypeFor[context.Context]():  true,
		reflect.TypeFor[*streams]():         true,
		reflect.TypeFor[*people.Terminal](): true,
		reflect.TypeFor[*acts.Streams]():    true,
		reflect.TypeFor[*kong.Context]():    true,
	}
	leaves := parser.Model.Leaves(false)
	for _, leaf := range leaves {
		run := leaf.Target.Addr().MethodByName("Run")
		if !run.IsValid() {
			t.Errorf("%s has no method Run", leaf.Path())
			continue
		}
		for parameter := range run.Type().Ins() {
			if !bound[parameter] {
				t.Errorf("%s: nothing binds %v", leaf.Path(), parameter)
			}
		}
	}
	if len(leaves) < 30 {
		t.Errorf("got %d commands", len(leaves))
	}
}
