package config_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/agentledger/agentledger/internal/config"
)

func TestUnknownVariables(t *testing.T) {
	for _, variable := range os.Environ() { // variables of this test's own environment
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "AGENTLEDGER_") {
			t.Setenv(name, "")
			_ = os.Unsetenv(name)
		}
	}
	for name, value := range map[string]string{
		"AGENTLEDGER_DTAA": "/x", "AGENTLEDGER_LOG_LEVLE": "debug", "AGENTLEDGER_MAX_POLL": "7", "AGENTLEDGER_COLOUR": "red",
		"AGENTLEDGER_": "", "AGENTLEDGER_MASTERKEY": "k",
		// Settings, secrets and the variables of builds and tests.
		"AGENTLEDGER_DATA": "/x", "AGENTLEDGER_MASTER_KEY": "k", "AGENTLEDGER_PLATFORM_SECRET": "s", "AGENTLEDGER_TEST_PROGRAMS": "/p",
		// The variables of a program that is not part of this one.
		"AGENTLEDGERS_DATA": "x", "OTHER_AGENTLEDGER_DTAA": "x",
	} {
		t.Setenv(name, value)
	}
	want := []config.UnknownVariable{{Name: "AGENTLEDGER_"}, {Name: "AGENTLEDGER_COLOUR"},
		{Name: "AGENTLEDGER_DTAA", Meant: "AGENTLEDGER_DATA"}, {Name: "AGENTLEDGER_LOG_LEVLE", Meant: "AGENTLEDGER_LOG_LEVEL"},
		{Name: "AGENTLEDGER_MASTERKEY", Meant: "AGENTLEDGER_MASTER_KEY"},
		{Name: "AGENTLEDGER_MAX_POLL", Meant: "tuning.max_polls in the configuration file"}}
	expectUnknown(t, want)

	// Such variables are not meant as port numbers, unless Kubernetes set all variables of a Service.
	t.Setenv("AGENTLEDGER_PORT", "tcp://10.0.0.1:80")
	t.Setenv("AGENTLEDGER_EU_PORT", "tcp://10.0.0.1:80")
	expectUnknown(t, slices.Insert(slices.Concat(want, []config.UnknownVariable{{Name: "AGENTLEDGER_PORT"}}), 3,
		config.UnknownVariable{Name: "AGENTLEDGER_EU_PORT"}))
	for _, service := range []string{"AGENTLEDGER_", "AGENTLEDGER_EU_"} {
		for _, name := range []string{"SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_80_TCP", "PORT_80_TCP_ADDR",
			"PORT_80_TCP_PORT", "PORT_80_TCP_PROTO"} {
			t.Setenv(service+name, "x")
		}
	}
	expectUnknown(t, want)
}

func expectUnknown(t *testing.T, want []config.UnknownVariable) {
	t.Helper()
	var c config.Serve
	parser, err := kong.New(&c, config.ParserOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	if got := config.UnknownVariables(parser.Model); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
