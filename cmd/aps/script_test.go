package main

import (
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"aps": main})
}

// The scripts find bundles of an honest log of each of two organizations, and the keys of both logs, next to their own
// files.
func TestScripts(t *testing.T) {
	s := filled(t, 6)
	var setup sync.Mutex // scripts run in parallel, and setting the disclosure must come first
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			setup.Lock()
			defer setup.Unlock()
			env.Setenv("LOG1", s.Organization(0).LogKey().String())
			env.Setenv("LOG2", s.Organization(1).LogKey().String())
			return writeLogs(env.WorkDir, s)
		},
	})
}
