package doctor

import (
	"context"
	"errors"
	"os"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/storage/archive/objects"
)

// checkArchive reads from the object store of the archive. It does not write: the start tries conditional writes.
func checkArchive(ctx context.Context, c config.Serve) []Finding {
	if c.Archive == "" {
		return []Finding{good("none: all texts are in the store")}
	}
	store, err := objects.New(c.Archive, objects.Options{Getenv: os.Getenv, Tries: 1})
	if err == nil {
		_, _, err = store.Read(ctx, "store", 1<<10)
	}
	switch {
	case errors.Is(err, objects.ErrNotFound):
		return []Finding{good("the object store answers, and no store has its archive there yet")}
	case err != nil:
		return []Finding{attend("look at --archive, its credentials and the network", "%v", err)}
	}
	return []Finding{good("the object store answers, and a store has its archive there")}
}
