package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/agentledger/agentledger/storage/pgstore/pgprograms"
)

// errNoPrograms explains how to install PostgreSQL.
var errNoPrograms = errors.New("PostgreSQL 15 or newer is not installed: run scripts/postgres as root, " +
	"or install the server package of your system (Debian: apt-get install postgresql; macOS: brew install postgresql)")

// programs is an installation of PostgreSQL and the user that it runs as.
type programs struct{ pgprograms.Installation }

func findPrograms() (programs, error) {
	found, err := pgprograms.Find()
	if errors.Is(err, pgprograms.ErrNone) {
		err = errNoPrograms
	}
	return programs{found}, err
}

func (p programs) command(name string, args ...string) *exec.Cmd {
	c := p.Command(context.Background(), endsWithUs(), name, args...)
	c.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	return c
}

// run runs a program and waits for it.
func (p programs) run(name string, args ...string) error {
	if out, err := p.command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}
