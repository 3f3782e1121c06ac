package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/agentledger/agentledger/cmd/agentledger/datadir"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/pgstore/schema"
)

// anchorTime bounds the comparison of the ledgers with their anchors.
const anchorTime = 5 * time.Second

// checkStore opens read-only what serve opens: the store, its archive, the master keys and the anchors. It finds reasons
// why serve would not start, and ledgers that would accept no events.
func checkStore(ctx context.Context, c config.Serve) []Finding {
	if err := datadir.Require(ctx, c.Store); err != nil {
		return judgeNoStore(c, err)
	}
	quiet := slog.New(slog.DiscardHandler)
	s, err := datadir.OpenReadOnly(ctx, c.Store, c.Tuning, quiet, anchor.OpenBeside)
	if err != nil {
		return []Finding{judgeRefusedStore(err)}
	}
	if err := s.CheckMasterKey(ctx); err != nil {
		return []Finding{judgeRefusedStore(errors.Join(err, s.Close()))}
	}
	found := judgeAnchorFiles(s, c)
	ledgers, err := log.Open(ctx, log.Options{Store: s.Engine, Keyring: s.Keyring, Anchors: s.Anchors, Logger: quiet,
		ReadOnly: true})
	if err != nil {
		return append(found, judgeRefusedStore(errors.Join(err, s.Close())))
	}
	summary, err := countUnanchored(ctx, s, ledgers)
	switch err := errors.Join(err, ledgers.Close(), s.Engine.Close()); {
	case err != nil:
		found = append(found, judgeRefusedStore(err))
	case summary != "":
		found = append(found, attend("restore the anchors if they were moved; otherwise adopt the latest checkpoint that was "+
			"shown of each log, or all stored heads (docs/operate/recover.md)", "%s", summary))
	}
	if len(found) == 0 {
		found = append(found, good("it opens with these keys and anchors"))
	}
	return found
}

// judgeNoStore returns the findings if there is no store, which the first start creates.
func judgeNoStore(c config.Serve, err error) []Finding {
	if c.Storage != "" {
		return nil // checkDatabase connects too, and a first start makes the tables
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return []Finding{attend("run the command as the user of the service", "%v", err)}
	}
	anchors, err := anchor.OpenBeside(c.AnchorsDir())
	if err != nil {
		return []Finding{attend("look at the folder of --anchors", "%v", err)}
	}
	defer anchors.Close()
	switch {
	case anchors.HasAny():
		return []Finding{attend("restore the store (docs/operate/backup.md: Restore), or use another folder of "+
			"anchors for a new store", "there are anchors in %s but no store at %s: the service would not start", c.AnchorsDir(),
			c.DatabaseDir())}
	case c.ReadOnly:
		return []Finding{attend("set --data to the data directory of the store", "there is no store at %s to read",
			c.DatabaseDir())}
	}
	return []Finding{good("there is none yet: the first start creates it")}
}

// judgeRefusedStore returns the finding about a store that could not be opened.
func judgeRefusedStore(err error) Finding {
	switch {
	case errors.Is(err, pebblestore.ErrInUse):
		return good("another process has it open, such as the service itself: it is not examined")
	case errors.Is(err, schema.ErrOlder):
		return good("its schema is of an earlier version: the next start upgrades it")
	case errors.Is(err, seal.ErrUnknownKey):
		return attend("restore the master key of this store; name a key that was replaced in --older-master-key-file",
			"the service would not start: %v", err)
	}
	return attend("docs/operate/recover.md: A store that is refused", "the service would not start: %v", err)
}

// judgeAnchorFiles returns the findings about the files of the anchors.
func judgeAnchorFiles(s *datadir.Store, c config.Serve) (found []Finding) {
	const do = "docs/operate/recover.md: Damaged anchors"
	for _, problem := range s.Anchors.Problems() {
		found = append(found, attend(do, "%s", problem))
	}
	if problem := s.Anchors.MissingNames(); problem != "" {
		found = append(found, attend("restore the file if it was moved; otherwise the next start writes it again", "%s", problem))
	}
	if _, err := os.Stat(c.AnchorsDir()); errors.Is(err, fs.ErrNotExist) {
		found = append(found, attend("mount the volume of the anchors, or name their folder in --anchors",
			"there is a store, but no folder of anchors at %s", c.AnchorsDir()))
	}
	return found
}

// countUnanchored describes ledgers that would accept no events because no anchor confirms their heads. It returns "" if
// there is none.
func countUnanchored(ctx context.Context, s *datadir.Store, ledgers *log.Ledgers) (summary string, err error) {
	looked, unanchored, end := 0, 0, time.Now().Add(anchorTime)
	for t, err := range s.Engine.Tenants(ctx) {
		if err != nil {
			return "", fmt.Errorf("list ledgers: %w", err)
		}
		anchored, err := ledgers.Anchored(ctx, t)
		if err != nil && !log.IsDamage(err) { // fsck finds damage of one ledger
			return "", err
		}
		if err == nil && !anchored {
			head, err := s.Engine.Head(ctx, t)
			if err != nil && !log.IsDamage(err) {
				return "", err
			}
			if head.Size > 0 {
				unanchored++
			}
		}
		if looked++; time.Now().After(end) {
			break
		}
	}
	if unanchored == 0 {
		return "", nil
	}
	return fmt.Sprintf("%d of %s without an anchor that confirms the head; such a log would be read-only", unanchored,
		textcheck.Count(looked, "examined log is", "examined logs are")), nil
}
