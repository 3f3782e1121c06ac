package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/cmd/agentledger/datadir"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/operate/rekey"
	"github.com/agentledger/agentledger/internal/operate/transfer"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log/anchor"
)

// exportCommand writes organizations of a stopped server's store into a folder.
type exportCommand struct {
	offline
	beside
	To           string `help:"Folder of the export, created with mode 0700. An interrupted export continues." required:"" type:"path" placeholder:"DIR"`
	Organization string `help:"Slug or id of the one organization to export. Default: all." placeholder:"SLUG|ID" type:"slugorid"`
	Retire       bool   `help:"When the export is complete, mark the exported organizations as moved: this store no longer accepts their events."`
	PieceKiB     int64  `name:"piece-kib" help:"Approximate size of one file of events in KiB, which is at most what an interrupted export repeats." default:"16384"`
	JSON         bool   `name:"json" help:"Machine-readable output and progress."`
}

// Validate implements kong's check after parsing.
func (c exportCommand) Validate() error {
	if c.Retire && c.Server != "" {
		return errors.New("--retire: stop the server first, because it would still accept events")
	}
	return c.CheckCopy(c.To)
}

// Run exports and, with --retire, retires what it exported.
func (c exportCommand) Run(ctx context.Context, out terminal) error {
	if c.Server != "" {
		return c.withSnapshot(ctx, out, c.beside, func(s *datadir.Store, _ string) error {
			return c.export(ctx, out, s)
		})
	}
	s, err := c.openSource(ctx, out)
	if err != nil {
		return err
	}
	return errors.Join(c.export(ctx, out, s), s.Close())
}

func (c exportCommand) export(ctx context.Context, out terminal, s *datadir.Store) error {
	x := transfer.Exporter{
		Place: s.TransferPlace(c.Logging.NewLogger(out.stderr)), Dir: c.To, PieceBytes: c.PieceKiB << 10,
		Report: newProgressReport(ctx, out.stderr, c.JSON).printProgress,
	}
	done, err := x.Run(ctx, c.Organization)
	if err == nil && c.Retire {
		err = x.Retire(ctx)
	}
	if err != nil {
		return transferError(out, err)
	}
	return printResults(out, c.JSON, "organizations", done, func(o transfer.Organization) string {
		return fmt.Sprintf("%s (%s): %s, root %s%s", o.Slug, o.ID, textcheck.Count(o.Size, "event"), o.Root, textIf(c.Retire, ", moved"))
	})
}

// openSource opens the store read-only, unless it will be marked afterwards.
func (c exportCommand) openSource(ctx context.Context, out terminal) (*datadir.Store, error) {
	if c.Retire {
		return c.openExisting(ctx, out)
	}
	return c.openExistingReadOnly(ctx, out, anchor.OpenReadOnly)
}

// importCommand imports organizations of an export into the store of a stopped server, or into a new one.
type importCommand struct {
	offline
	From         string `help:"Folder of the export." type:"existingdir" placeholder:"DIR"`
	Organization string `help:"Slug or id of the one organization to import. Default: all." placeholder:"SLUG|ID" type:"slugorid"`
	Reopen       bool   `help:"Reopen organizations that were moved away from this store and were never opened elsewhere."`
	Check        bool   `help:"Only read the export and compare it with its checkpoints; no store is needed, but the master key is."`
	carried
	Yes  bool `short:"y" help:"Import without asking. Required without a terminal."`
	Drop bool `help:"Remove the partial import of an organization, by its ID. A completed import is never removed."`
	JSON bool `name:"json" help:"Machine-readable output and progress."`
}

// carried is the flag of commands that read data which may have been changed in transit.
type carried struct {
	Unauthenticated bool `help:"Read it although no authenticator shows that a service with this master key wrote it, for example because an older version did. Anyone who could write to it may have replaced passwords, agent keys, policies and roles: trust it as you trust them."`
}

// keyring returns the keys that check an authenticator, or nil if it is not checked.
func (c carried) keyring(s config.Store) (*seal.Keyring, error) {
	if c.Unauthenticated {
		return nil, nil
	}
	keyring, err := datadir.ReadKeyring(s)
	if err != nil {
		return nil, fmt.Errorf("read the master key, which authenticates the export: %w", err)
	}
	return keyring, nil
}

// Validate implements kong's check after parsing.
func (c importCommand) Validate() error {
	switch {
	case c.Drop && (c.Organization == "" || c.From != "" || c.Reopen || c.Check):
		return errors.New("--drop allows no other flag than --organization")
	case !c.Drop && c.From == "":
		return errors.New("missing flags: --from=DIR")
	}
	return nil
}

// dropImport removes a partial import.
func (c importCommand) dropImport(ctx context.Context, out terminal) error {
	s, err := c.openExisting(ctx, out)
	if err != nil {
		return err
	}
	dropped, err := transfer.Drop(ctx, s.TransferPlace(c.Logging.NewLogger(out.stderr)), c.Organization)
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	return printResults(out, c.JSON, "dropped", dropped, func(o id.Origin) string { return string(o) + ": dropped" })
}

// Run imports. It returns errFound (exit code 1) if the export is damaged.
func (c importCommand) Run(ctx context.Context, out terminal) error {
	if c.Drop {
		return c.dropImport(ctx, out)
	}
	progress := newProgressReport(ctx, out.stderr, c.JSON)
	if c.Check {
		i := transfer.Importer{Dir: c.From, Sealed: rekey.SealedRecords(), Report: progress.printProgress,
			Unauthenticated: c.Unauthenticated}
		var err error
		if i.Keyring, err = c.keyring(c.Store); err != nil {
			return err
		}
		done, err := i.Check(ctx, c.Organization)
		if err != nil {
			return transferError(out, err)
		}
		return printResults(out, c.JSON, "organizations", done, func(o transfer.Organization) string {
			return fmt.Sprintf("%s (%s): %s, root %s", o.Slug, o.ID, textcheck.Count(o.Size, "event"), o.Root)
		})
	}
	logger := c.Logging.NewLogger(out.stderr)
	if err := datadir.RequireMasterKey(c.Store); err != nil {
		return err
	}
	s, err := c.openToWrite(ctx, out)
	if err != nil {
		return err
	}
	if err := rekey.BeginRekeying(ctx, s.Engine, s.Keyring); err != nil {
		return errors.Join(err, s.Close())
	}
	i := transfer.Importer{Place: s.TransferPlace(logger), Dir: c.From, Sealed: rekey.SealedRecords(), Reopen: c.Reopen,
		Report: progress.printProgress, Unauthenticated: c.Unauthenticated}
	if err := c.askFirst(ctx, out, &i); err != nil {
		return transferError(out, errors.Join(err, s.Close()))
	}
	done, err := i.Run(ctx, c.Organization)
	if err = errors.Join(err, s.CloseEngine()); err != nil {
		return transferError(out, err)
	}
	return printResults(out, c.JSON, "organizations", done, func(a transfer.Arrived) string {
		was := ""
		switch {
		case a.There:
			was = ", was here already"
		case a.Before > 0:
			was = fmt.Sprintf(", %s here already", textcheck.Count(a.Before, "was", "were"))
		}
		return fmt.Sprintf("%s (%s): %s, root %s%s", a.Slug, a.ID, textcheck.Count(a.Size, "event"), a.Root, was)
	})
}

// askFirst prints the accounts and the plan of each organization, and asks the operator whether to import them.
func (c importCommand) askFirst(ctx context.Context, out terminal, i *transfer.Importer) error {
	syncs.BeginStep(ctx, "", "") // the question stays on the terminal
	all, err := i.Preview(ctx, c.Organization)
	if err != nil {
		return err
	}
	for _, p := range all {
		out.printProblem(fmt.Sprintf("%s (%s): plan %s, %s", p.Slug, p.ID, p.Plan, textcheck.Count(len(p.People), "account")))
		for _, who := range p.People {
			out.printProblem(fmt.Sprintf("  %s (%s)", who.Email, who.Role))
		}
	}
	out.printProblem("These addresses are not proved to this service. New accounts are valid in their organization only, until " +
		"their owners prove the addresses here.")
	if c.Yes {
		return nil
	}
	if !commandline.IsTerminal(os.Stdin) {
		return errors.New("import: nothing was imported, because there is no terminal for the confirmation: check the accounts and plans " +
			"above, then add --yes")
	}
	fmt.Fprint(out.stderr, "Import them? [y/N] ")
	answer, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("import: nothing was imported")
	}
	return nil
}

// transferError prints that an export is damaged and returns errFound (exit code 1). It returns other errors unchanged.
func transferError(out terminal, err error) error {
	if !errors.Is(err, transfer.ErrDamaged) {
		return err
	}
	out.printError(err)
	return errFound
}

// printResults prints one line per result, or one JSON object.
func printResults[T any](out terminal, asJSON bool, name string, all []T, line func(T) string) error {
	if asJSON {
		text, err := json.Marshal(map[string][]T{name: all})
		if err == nil {
			_, err = fmt.Fprintf(out.stdout, "%s\n", text)
		}
		return err
	}
	var b strings.Builder
	for _, v := range all {
		b.WriteString(line(v) + "\n")
	}
	_, err := fmt.Fprint(out.stdout, b.String())
	return err
}

func textIf(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

// eventsPerSecond is a rate.
func eventsPerSecond(events id.Index, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(events) / seconds
}
