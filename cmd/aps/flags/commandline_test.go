package flags_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/agentledger/agentledger/cmd/aps/flags"
)

// grammar has each kind of flag and argument that aps has.
type grammar struct {
	JSON  bool         `name:"json"`
	Send  sendCommand  `cmd:"" help:"Send."`
	Vote  voteCommand  `cmd:"" help:"Vote."`
	Watch watchCommand `cmd:"" help:"Watch."`
	Run   runCommand   `cmd:"" help:"Run."`
	Keys  struct {
		Make  makeCommand `cmd:"" help:"Make."`
		List  listCommand `cmd:"" help:"List."`
		Other listCommand `cmd:"" hidden:""`
	} `cmd:"" help:"Keys."`
}

type common struct {
	Org string `required:"" env:"TEST_ORG"`
	URL string `name:"url" required:"" env:"TEST_URL" placeholder:"URL"`
}

type sendCommand struct {
	common
	File string        `arg:"" optional:"" default:"-"`
	Form string        `enum:"digest,canonical" default:"digest" env:"TEST_FORM"`
	Wait time.Duration `default:"5s"`
	Tag  []string
	Map  map[string]string
}

type voteCommand struct {
	ID     string `arg:""`
	Action string `required:""`
	CSV    bool   `xor:"format"`
	NDJSON bool   `name:"ndjson" xor:"format"`
}

type watchCommand struct {
	Tries int `default:"8"`
}

// Validate is kong's name of the check, CheckFlags that of this package.
func (w *watchCommand) Validate() error { return w.CheckFlags() }

func (w *watchCommand) CheckFlags() error {
	if w.Tries < 1 {
		return errors.New("--tries must be positive")
	}
	return nil
}

type runCommand struct {
	Name    string   `arg:"" optional:""`
	Program []string `arg:"" optional:"" passthrough:""`
}

type makeCommand struct {
	Out  string `xor:"source"`
	From string `xor:"source"`
	Hold string `enum:",on,off" default:""`
}

type listCommand struct {
	First  string   `arg:""`
	Others []string `arg:""`
}

// result is a parsed command line.
type result struct {
	values  grammar
	command string
	err     string
	help    string
}

// parse parses args with a new parser.
func parse(t *testing.T, args []string, run func(*kong.Kong) (any, error)) result {
	t.Helper()
	var r result
	var out bytes.Buffer
	k, err := kong.New(&r.values, kong.Name("test"), kong.Writers(&out, &out), kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Exit(func(int) { panic("help") }))
	if err != nil {
		t.Fatal(err)
	}
	command, err := run(k)
	if err != nil {
		r.err = err.Error()
		r.values = grammar{} // not used after an error
	}
	r.command, r.help = fmt.Sprintf("%T", command), out.String()
	return r
}

// byKong parses by kong's own Parse.
func byKong(args []string) func(k *kong.Kong) (any, error) {
	return func(k *kong.Kong) (command any, err error) {
		defer func() {
			if recover() == "help" {
				command, err = nil, nil
			}
		}()
		c, err := k.Parse(args)
		if err != nil {
			return nil, err
		}
		return c.Selected().Target.Addr().Interface(), nil
	}
}

// A command line has the same result as by kong's Parse.
func TestAsKong(t *testing.T) {
	t.Setenv("TEST_URL", "https://red.example")
	environments := []map[string]string{{}, {"TEST_ORG": "blue"}, {"TEST_ORG": "red", "TEST_FORM": "wrong"}}
	for _, environment := range environments {
		for name, value := range environment {
			t.Setenv(name, value)
		}
		for _, line := range []string{
			"", "--help", "-h", "--json", "--nothing", "nothing", "--json=maybe",
			"send", "send --org red", "send --org red file", "send --org red file more", "send --org=red --url u --form canonical",
			"send --org red --form other", "send --org red --wait soon", "send --org red --wait -1s", "send --help", "send --form other --help",
			"send --bogus --help", "send --org red --tag a --tag b,c --map x=1;y=2", "send --org", "send --org red --map x", "--json send --org red",
			"vote", "vote id", "vote --action a", "vote id --action a", "vote id --action a --csv", "vote id --action a --csv --ndjson",
			"vote id other --action a", "vote --help", "vote id --action a --csv=false --ndjson",
			"watch", "watch --tries 0", "watch --tries -4", "watch --tries x", "watch --tries 3",
			"run", "run red", "run red -- program --flag", "run red program --flag", "run -- program",
			"keys", "keys --help", "keys bogus", "keys make", "keys make --out a --from b", "keys make --hold on", "keys make --hold maybe", "keys make extra",
			"keys list", "keys list a", "keys list a b c", "keys other", "keys other a b",
		} {
			args := strings.Fields(line)
			want := parse(t, args, byKong(args))
			got := parse(t, args, func(k *kong.Kong) (any, error) { return flags.Parse(k, args) })
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%v: %s:\ngot  %+v\nwant %+v", environment, line, got, want)
			}
		}
	}
}

func TestErrorsAreOfUsage(t *testing.T) {
	for _, line := range []string{"nothing", "watch --tries 0", "watch --tries x", "vote id", "keys"} {
		args := strings.Fields(line)
		parse(t, args, func(k *kong.Kong) (any, error) {
			_, err := flags.Parse(k, args)
			if usage, is := errors.AsType[*flags.Error](err); !is || usage.Unwrap() == nil {
				t.Errorf("%s: got %T", line, err)
			}
			return nil, err
		})
	}
}
