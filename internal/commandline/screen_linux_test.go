package commandline

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/pseudoterminal"
)

func printSample(t *testing.T, out io.Writer) {
	t.Helper()
	table := NewTable(out, "INDEX", "DECISION", "AGENT", "EVENT")
	for _, row := range [][]any{{uint64(37), "deny", "agt_1", "evt_1"}, {uint64(8), "allow", "agt_longer", "evt_2"}} {
		if err := table.PrintRow("%8d  %-21s  %s  %s", row...); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.PrintRow("%8d  %s", uint64(9), "pending"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(Tinted(out), NewScreen(out).Tint("FAIL  chain\n")+"attention files: x\nnothing\n"); err != nil {
		t.Fatal(err)
	}
}

// Files and pipes get neither headers nor colours.
func TestPrintedInAPipe(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	const want = "      37  deny                   agt_1  evt_1\n       8  allow                  agt_longer  evt_2\n       9  pending\nFAIL  chain\nattention files: x\nnothing\n"
	var buffer bytes.Buffer
	printSample(t, &buffer)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	printSample(t, writer)
	writer.Close()
	piped, err := io.ReadAll(reader)
	if err != nil || buffer.String() != want || string(piped) != want {
		t.Errorf("got %q and %q, %v", buffer.String(), piped, err)
	}
}

func TestPrintedOnATerminal(t *testing.T) {
	const headers = "INDEX  DECISION  AGENT  EVENT\n   37  deny      agt_1  evt_1\n    8  allow     agt_longer  evt_2\n    9  pending\nFAIL  chain\nattention files: x\nnothing\n"
	coloured := strings.NewReplacer("INDEX  DECISION  AGENT  EVENT", "\x1b[1mINDEX  DECISION  AGENT  EVENT\x1b[0m", "deny", "\x1b[31mdeny\x1b[0m",
		"allow", "\x1b[32mallow\x1b[0m", "pending", "\x1b[33mpending\x1b[0m", "FAIL", "\x1b[31mFAIL\x1b[0m", "attention", "\x1b[31mattention\x1b[0m").Replace(headers)
	for _, tc := range []struct{ name, term, noColor, want string }{
		{"colours", "xterm-256color", "", coloured},
		{"NO_COLOR", "xterm-256color", "1", headers},
		{"dumb", "dumb", "", headers},
		{"no TERM", "", "", headers},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("TERM", tc.term)
			t.Setenv("NO_COLOR", tc.noColor)
			terminal, read := pseudoterminal.Open(t)
			printSample(t, terminal)
			if got := strings.ReplaceAll(read(), "\r\n", "\n"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
