package commandline_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/internal/test/pseudoterminal"
)

// What is typed at a terminal after the question is not shown. When the program is to end, the terminal shows it again.
func TestReadSecretAtATerminal(t *testing.T) {
	terminal, typeLine, read := pseudoterminal.OpenTyped(t)
	isShown := func() bool {
		t.Helper()
		state, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return state.Lflag&unix.ECHO != 0
	}
	whenHidden := func(do func()) {
		for isShown() { // until the program has turned it off
			if t.Context().Err() != nil {
				return
			}
		}
		do()
	}
	var prompt bytes.Buffer
	var typing sync.WaitGroup
	typing.Go(func() { whenHidden(func() { typeLine("a secret") }) })
	got, err := commandline.ReadSecret(t.Context(), terminal, &prompt, "Password")
	if got != "a secret" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if got, want := prompt.String(), "Password: \n"; got != want {
		t.Errorf("prompt: got %q, want %q", got, want)
	}
	if !isShown() {
		t.Error("the terminal shows nothing after the secret")
	}
	typing.Wait()
	others := runtime.NumGoroutine()
	ended := errors.New("the program ends")
	ctx, end := context.WithCancelCause(t.Context())
	go whenHidden(func() { end(ended) })
	if _, err := commandline.ReadSecret(ctx, terminal, io.Discard, "Password"); !errors.Is(err, ended) || !isShown() {
		t.Errorf("got %v, shown %v", err, isShown())
	}
	typeLine("") // ends the read that the program left
	for runtime.NumGoroutine() > others && t.Context().Err() == nil {
		runtime.Gosched()
	}
	if _, err := commandline.ReadSecret(ctx, terminal, io.Discard, "Password"); !errors.Is(err, ended) {
		t.Errorf("after the end: got %v", err)
	}
	if got := read(); strings.Contains(got, "secret") {
		t.Errorf("the terminal shows %q", got)
	}
}

// From a pipe or a file, it is the first line, and nothing is asked.
func TestReadSecretFromAPipe(t *testing.T) {
	for name, tc := range map[string]struct {
		text, want string
		err        error
	}{
		"a line":          {"a secret\r\nmore\n", "a secret", nil},
		"no line end":     {"a secret", "a secret", nil},
		"nothing":         {"", "", io.EOF},
		"an empty line":   {"\n", "", nil},
		"a line of 4 KiB": {strings.Repeat("x", 4<<10) + "y\n", strings.Repeat("x", 4<<10), nil},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = io.WriteString(w, tc.text)
			w.Close()
		}()
		var prompt bytes.Buffer
		got, err := commandline.ReadSecret(t.Context(), r, &prompt, "Password")
		if got != tc.want || !errors.Is(err, tc.err) || prompt.Len() != 0 {
			t.Errorf("%s: got %q, %v, prompt %q, want %q, %v", name, got, err, &prompt, tc.want, tc.err)
		}
		r.Close()
	}
}
