// Vulncheck runs a scan for known vulnerabilities and keeps the date of the last one
// that was made in a file of the tree.
//
//	vulncheck DATEFILE COMMAND [ARGUMENT...]
//
// The command is govulncheck or ends as it does: status 0 when nothing was found, 3
// when something vulnerable is called, another one when no scan could be made, for
// example because the database could not be asked.
//
// A scan that found nothing puts the date of today (UTC) into the file. One that could
// not be made is accepted while the date is at most 30 days old. The first line of the
// file is the date, or "none since" and the date from which on no scan is recorded:
// then the 30 days begin there.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := checkVulnerabilities(ctx, os.Args[1:], time.Now(), os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "vulncheck:", err)
		os.Exit(1)
	}
}

func checkVulnerabilities(ctx context.Context, args []string, now time.Time, out, problems io.Writer) error {
	if len(args) < 2 {
		return errors.New("usage: vulncheck DATEFILE COMMAND [ARGUMENT...]")
	}
	status, err := runScan(ctx, args[1:], out, problems)
	if err != nil {
		return err
	}
	switch status {
	case nothingFound:
		return os.WriteFile(args[0], []byte(now.UTC().Format(time.DateOnly)+"\n"), 0o644)
	case vulnerable:
		return errors.New("something that is called is vulnerable")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return fmt.Errorf("read date of the last scan: %w", err)
	}
	last, err := parseRecord(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return last.acceptMissingScan(now, out)
}

// Statuses of govulncheck.
const (
	nothingFound = 0
	vulnerable   = 3
)

// runScan runs the command and returns its exit status.
func runScan(ctx context.Context, command []string, out, problems io.Writer) (status int, err error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Stdout, c.Stderr = out, problems
	err = c.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ctx.Err() == nil {
		return ended.ExitCode(), nil
	}
	if err != nil {
		return 0, fmt.Errorf("scan: %w", err)
	}
	return nothingFound, nil
}

// record is the content of the file.
type record struct {
	date time.Time // of the last scan, or since when none is recorded
	none bool
}

const noneSince = "none since "

func parseRecord(text string) (r record, err error) {
	line, _, _ := strings.Cut(text, "\n")
	date, none := strings.CutPrefix(line, noneSince)
	r.none = none
	if r.date, err = time.Parse(time.DateOnly, date); err != nil {
		return record{}, fmt.Errorf("the first line is no date: %w", err)
	}
	return r, nil
}

// maxAge is for how many days the last scan stands for one that can't be made.
const maxAge = 30

// acceptMissingScan tells of a scan that could not be made, which is an error when the last one is
// too old.
func (r record) acceptMissingScan(now time.Time, out io.Writer) error {
	today := now.UTC().Truncate(24 * time.Hour)
	what := "the last scan was made on " + r.date.Format(time.DateOnly)
	if r.none {
		what = "no scan is recorded yet, counted from " + r.date.Format(time.DateOnly)
	}
	if r.date.After(today) {
		return fmt.Errorf("%s, which has not come yet", what)
	}
	end := r.date.AddDate(0, 0, maxAge)
	if today.After(end) {
		return fmt.Errorf("no scan could be made (see above), and %s, more than %d days ago: "+
			"make one where the database can be asked, and commit the date", what, maxAge)
	}
	_, err := fmt.Fprintf(out, "NOT CHECKED: no scan could be made (see above); %s. After %s this is an error.\n", what,
		end.Format(time.DateOnly))
	return err
}
