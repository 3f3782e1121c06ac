package interop

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"
	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) {
	flag.Parse()
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// pinned is a log under one checkpoint, whatever is the latest. It therefore needs partial tiles that the log has
// outgrown.
type pinned struct {
	*client.HTTPFetcher
	checkpoint []byte
}

func (p pinned) ReadCheckpoint(context.Context) ([]byte, error) { return p.checkpoint, nil }

// hashBundle parses an entry bundle with Tessera and hashes its entries.
func hashBundle(raw []byte) ([][]byte, error) {
	var b api.EntryBundle
	if err := b.UnmarshalText(raw); err != nil {
		return nil, err
	}
	hashes := make([][]byte, 0, len(b.Entries))
	for _, e := range b.Entries {
		hashes = append(hashes, rfc6962.DefaultHasher.HashLeaf(e))
	}
	return hashes, nil
}

// errDeadline means that a check did not end.
var errDeadline = errors.New("no answer within the deadline")

// fsckLog runs Tessera's fsck. A worker that finds damage stops reading its channel, and the sender may then wait
// forever; hence the deadline.
func fsckLog(origin string, key note.Verifier, f fsck.Fetcher, workers uint, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- fsck.New(origin, key, f, hashBundle, fsck.Opts{N: workers}).Check(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errDeadline
	}
}

// prover returns Tessera's prover for a tree of that size, from the tiles only.
func prover(ctx context.Context, f *client.HTTPFetcher, size uint64) (*client.ProofBuilder, error) {
	p, err := client.NewProofBuilder(ctx, size, f.ReadTile)
	if err != nil {
		return nil, fmt.Errorf("prover of size %d: %w", size, err)
	}
	return p, nil
}

// checkConsistency checks a proof with transparency-dev/merkle.
func checkConsistency(from, to head, hashes [][]byte) error {
	return proof.VerifyConsistency(rfc6962.DefaultHasher, from.size, to.size, hashes, from.root[:], to.root[:])
}

// checkInclusion checks a proof with transparency-dev/merkle.
func checkInclusion(index uint64, leaf []byte, h head, hashes [][]byte) error {
	return proof.VerifyInclusion(rfc6962.DefaultHasher, index, h.size, leaf, hashes, h.root[:])
}
