// Package doctor checks a machine and the settings of a service, before the service starts or while it runs, and reports
// what to change.
//
// Invariants:
//
//   - It reads the settings of serve (config.Serve) from the same flags, environment and file, and opens the same stores
//     read-only. The only thing it writes is a temporary file in the data directory and in the
//     folder of the anchors.
//   - Every finding that is not good contains what to do.
//   - A check ends within ten seconds. If it can't do its work, that is a finding.
//   - Secrets and passwords are read only to check their form, and no finding contains one.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/syncs"
)

// ErrFound means that something needs attention.
var ErrFound = errors.New("something needs attention")

// checkTime bounds each check.
const checkTime = 10 * time.Second

// Command checks the machine and the settings.
type Command struct {
	JSON bool `name:"json" help:"Machine-readable output."`
	config.Serve
}

// Level is the severity of a finding.
type Level string

// Levels.
const (
	Good      Level = "good"
	Advice    Level = "advice"    // it works, and could be better
	Attention Level = "attention" // it does not work, or acknowledged data is at risk
)

// Finding is a result of a check.
type Finding struct {
	Check   string `json:"check"`
	Level   Level  `json:"level"`
	Summary string `json:"summary"`
	Do      string `json:"do,omitempty"` // empty if the level is Good
}

func good(format string, args ...any) Finding {
	return Finding{Level: Good, Summary: fmt.Sprintf(format, args...)}
}

func advise(do, format string, args ...any) Finding {
	return Finding{Level: Advice, Summary: fmt.Sprintf(format, args...), Do: do}
}

func attend(do, format string, args ...any) Finding {
	return Finding{Level: Attention, Summary: fmt.Sprintf(format, args...), Do: do}
}

// check checks one thing.
type check struct {
	name string
	look func(ctx context.Context, c config.Serve) []Finding
}

func checks() []check {
	return []check{{"settings", checkSettings}, {"files", checkFiles}, {"store", checkStore}, {"disk", checkDisks}, {"clock", checkClock},
		{"open files", checkOpenFiles}, {"ports", checkPorts}, {"proxy", checkProxy}, {"certificate", checkCertificate},
		{"database", checkDatabase}, {"archive", checkArchive}, {"mail", checkMail}}
}

// Run prints all findings. It returns ErrFound if one needs attention.
func (c Command) Run(ctx context.Context, out io.Writer, parsed *kong.Context, settings *config.File) error {
	local, err := c.UseLocalDefaults(settings)
	if err != nil {
		return err
	}
	all := append(judgeVariables(config.UnknownVariables(parsed.Model)), checkSettingsFiles(c.Serve, settings.Path())...)
	if local {
		f := advise("set --public-url and --data before others use it", "serve uses %s and %s, for this machine only", c.PublicURL, c.Data)
		f.Check = "settings"
		all = append(all, f)
	}
	all = append(all, examine(ctx, c.Serve, checks())...)
	if err := c.printFindings(out, all); err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(f Finding) bool { return f.Level == Attention }) {
		return ErrFound
	}
	return nil
}

// examine runs all checks, one after the other because some measure the disk.
func examine(ctx context.Context, c config.Serve, all []check) (found []Finding) {
	for _, one := range all {
		syncs.BeginStep(ctx, "checking: "+one.name, "")
		bounded, cancel := context.WithTimeout(ctx, checkTime)
		for _, f := range lookWithin(bounded, one, c) {
			f.Check = one.name
			found = append(found, f)
		}
		cancel()
	}
	return found
}

// lookWithin runs one check. If a disk does not respond, the goroutine is abandoned and the command continues.
func lookWithin(ctx context.Context, one check, c config.Serve) []Finding {
	done := make(chan []Finding, 1)
	go func() { done <- one.look(ctx, c) }()
	select {
	case found := <-done:
		return found
	case <-ctx.Done():
	}
	select { // a check that ends with ctx has findings of its own
	case found := <-done:
		return found
	case <-time.After(time.Second):
		return []Finding{attend("look at the disk and the network that the settings name",
			"no answer within %v", checkTime)}
	}
}

func (c Command) printFindings(out io.Writer, all []Finding) error {
	if c.JSON {
		text, err := json.Marshal(map[string][]Finding{"findings": all})
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n", text)
		}
		return err
	}
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "%-10s%s: %s\n", f.Level, f.Check, f.Summary)
		if f.Do != "" {
			fmt.Fprintf(&b, "%-10sdo: %s\n", "", f.Do)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
