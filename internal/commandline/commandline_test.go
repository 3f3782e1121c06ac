package commandline

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// sample is a program with the kinds of commands and flags that both programs have.
type sample struct {
	JSON bool `name:"json" help:"As JSON."`
	Common
	Send struct {
		URL  string   `name:"url"`
		Form string   `enum:"digest,canonical" default:"digest" help:"What is signed."`
		Dry  bool     `short:"n"`
		See  []string `placeholder:"NAME"`
		File string   `arg:"" optional:"" type:"path"`
	} `cmd:"" help:"Send events."`
	Policy struct {
		Show struct {
			Version uint64
			Name    string `arg:""`
		} `cmd:""`
		Push struct {
			Dir string `placeholder:"DIR"`
		} `cmd:""`
	} `cmd:"" help:"Policies."`
	Wrap struct {
		Tool    string
		Command []string `arg:"" passthrough:""`
	} `cmd:""`
	MCP struct {
		Serve struct {
			URL  string `name:"url"`
			Name string `arg:"" optional:""`
		} `cmd:"" default:"withargs"`
		Approvals struct{} `cmd:""`
	} `cmd:"" name:"mcp"`
	Version struct{} `cmd:"" help:"Print the version."`
}

func newSample(t *testing.T) *kong.Kong {
	t.Helper()
	k, err := kong.New(new(sample), kong.Name("sample"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestFlagsInFrontOfTheCommand(t *testing.T) {
	k := newSample(t)
	for _, tc := range []struct{ given, want string }{
		{"send x", "send x"},
		{"--json send x", "--json send x"},
		{"--url u send x", "send --url u x"},
		{"--url=u --json -n send x --form canonical", "--json send --url=u -n x --form canonical"},
		{"policy --version 3 show p", "policy show --version 3 p"},
		{"--dir d policy push", "policy push --dir d"},
		{"--tool t wrap -- true --json", "wrap --tool t -- true --json"},
		{"mcp --url u files", "mcp --url u files"},
		{"--url u mcp files", "mcp --url u files"},
		{"--version", "version"},
		{"--json --version", "--json version"},
		{"--unknown send", "--unknown send"},
		{"--url", "--url"},
		{"send --url", "send --url"},
		{"-- send", "-- send"},
		{"", ""},
	} {
		if got := strings.Join(flagsLast(k.Model.Node, strings.Fields(tc.given)), " "); got != tc.want {
			t.Errorf("%q: got %q, want %q", tc.given, got, tc.want)
		}
	}
}

func TestComplete(t *testing.T) {
	k := newSample(t)
	for _, tc := range []struct {
		words string // the last one is to be completed, _ is an empty one
		kind  kind
		found string
	}{
		{"", anyWords, "completion mcp policy send version wrap"},
		{"_", anyWords, "completion mcp policy send version wrap"},
		{"se", anyWords, "send"},
		{"-", anyWords, "--help --json --version"},
		{"completion _", anyWords, "bash fish zsh"},
		{"policy _", anyWords, "push show"},
		{"--json policy sh", anyWords, "show"},
		{"--url u se", anyWords, "send"},
		{"policy push --dir _", folders, ""},
		{"policy push --dir=x", folders, ""},
		{"policy show _", anyWords, ""},
		{"send _", files, ""},
		{"send a _", anyWords, ""},
		{"send --", anyWords, "--dry --form --help --json --see --url"},
		{"send --see a --form digest --", anyWords, "--dry --help --json --see --url"},
		{"send --form _", anyWords, "canonical digest"},
		{"send --form c", anyWords, "canonical"},
		{"send --form=c", anyWords, "--form=canonical"},
		{"send --form =", anyWords, "canonical digest"},
		{"send --form = c", anyWords, "canonical"},
		{"send --form = canonical --d", anyWords, "--dry"},
		{"wrap _", files, ""},
		{"wrap -- tr", files, ""},
		{"mcp _", anyWords, "approvals serve"},
		{"mcp --u", anyWords, "--url"},
	} {
		words := strings.Fields(tc.words)
		for i, w := range words {
			words[i] = strings.TrimPrefix(w, "_")
		}
		gotKind, found := complete(k.Model.Node, words)
		var got []string
		for _, f := range found {
			got = append(got, f.word)
		}
		slices.Sort(got)
		if gotKind != tc.kind || strings.Join(got, " ") != tc.found {
			t.Errorf("%q: got %s %q, want %s %q", tc.words, gotKind, got, tc.kind, tc.found)
		}
	}
}

// The commands print what the scripts of the shells expect.
func TestCompletionCommands(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"completion bash", "complete -F _complete_sample sample\n"},
		{"completion zsh", "#compdef sample\n"},
		{"completion fish", "complete -c sample -f -a '(__complete_sample)'\n"},
		{"complete -- send --fo", "words\n--form\tWhat is signed.\n"},
		{"complete", "\nsend\tSend events.\n"},
	} {
		var out bytes.Buffer
		k, err := kong.New(new(sample), kong.Name("sample"), kong.Writers(&out, &out))
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := Parse(k, strings.Fields(tc.args))
		if err == nil {
			err = parsed.Run()
		}
		if err != nil || !strings.Contains(out.String(), tc.want) {
			t.Errorf("%s: got %v, %s", tc.args, err, out.String())
		}
	}
}
