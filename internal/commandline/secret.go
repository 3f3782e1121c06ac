package commandline

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/agentledger/agentledger/internal/secret"
)

// ReadSecret reads one line with a secret, without its line end. At a terminal it asks for it on prompt, and what is typed is
// not shown; it stops waiting when ctx ends. A line may have up to 4 KiB. The error is io.EOF if there is no line.
func ReadSecret(ctx context.Context, in io.Reader, prompt io.Writer, what string) (string, error) {
	if !IsTerminal(in) {
		line, err := bufio.NewReader(io.LimitReader(in, 4<<10)).ReadString('\n')
		if line = secret.TrimLineEnd(line); line != "" {
			return line, nil
		}
		return "", err
	}
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	fd := int(in.(*os.File).Fd())
	shown, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("terminal: %w", err)
	}
	fmt.Fprint(prompt, what+": ")
	defer fmt.Fprintln(prompt)
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := term.ReadPassword(fd)
		read <- line{text, err}
	}()
	select {
	case l := <-read:
		return string(l.text), l.err
	case <-ctx.Done(): // the program ends while the terminal is still read
		_ = term.Restore(fd, shown)
		return "", context.Cause(ctx)
	}
}
