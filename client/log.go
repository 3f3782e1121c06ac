package client

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// Log reads one organization's public log under a key that the caller trusts. Its methods return
// only data that package verify has checked. A failed check is an error that wraps an error of
// verify or tlog and is not an *Error. If the log gets another key, only Follow accepts it. Log is
// safe for concurrent use.
type Log struct {
	client  *Client
	slug    id.Slug
	key     tlog.VerifierKey
	retired []verify.LogKey

	mu    sync.Mutex
	known []verify.LogKey // key, and the keys that Follow has accepted
}

// Log returns the log of the organization called slug. key is the log's key. retired are earlier
// keys, which count only for bundles (verify.Options).
func (c *Client) Log(slug id.Slug, key tlog.VerifierKey, retired ...verify.LogKey) *Log {
	return &Log{client: c, slug: slug, key: key, retired: slices.Clone(retired), known: []verify.LogKey{verify.Always(key)}}
}

// Head fetches the head and checks it with verify.CheckHead. A head with a Fault may lack its
// latest leaf hash and time. Errors are those of Call and verify.CheckHead.
func (l *Log) Head(ctx context.Context) (verify.Head, tlog.Checkpoint, error) {
	var head verify.Head
	if err := l.client.fetchPublicJSON(ctx, publicPath(l.slug, "transparency/head"), &head); err != nil {
		return verify.Head{}, tlog.Checkpoint{}, fmt.Errorf("fetch head: %w", err)
	}
	checkpoint, err := verify.CheckHead(head, signerAmong(l.knownKeys(), head.Checkpoint))
	if err != nil {
		return verify.Head{}, tlog.Checkpoint{}, fmt.Errorf("fetch head: %w", err)
	}
	return head, checkpoint, nil
}

// Checkpoint fetches the latest checkpoint, signed by the log's key, and its signed note. Errors
// are those of Call and tlog.OpenCheckpoint.
func (l *Log) Checkpoint(ctx context.Context) (tlog.Checkpoint, []byte, error) {
	note, err := l.client.sendWithRetries(ctx,
		call{method: http.MethodGet, path: publicPath(l.slug, "transparency/checkpoint")})
	if err != nil {
		return tlog.Checkpoint{}, nil, fmt.Errorf("fetch checkpoint: %w", err)
	}
	checkpoint, err := tlog.OpenCheckpoint(note, signerAmong(l.knownKeys(), string(note)))
	if err != nil {
		return tlog.Checkpoint{}, nil, fmt.Errorf("fetch checkpoint: %w", err)
	}
	return checkpoint, note, nil
}

// Inclusion fetches and checks the proof that leaf is at index in the tree of a
// checkpoint from this Log. Errors are those of Call and verify.CheckInclusionAnswer.
func (l *Log) Inclusion(ctx context.Context, index id.Index, leaf id.Hash, at tlog.Checkpoint) ([]id.Hash, error) {
	var answer verify.InclusionAnswer
	path := fmt.Sprintf("transparency/inclusion?log_index=%d&tree_size=%d", index, at.Size)
	if err := l.client.fetchPublicJSON(ctx, publicPath(l.slug, path), &answer); err != nil {
		return nil, fmt.Errorf("fetch inclusion proof: %w", err)
	}
	if err := verify.CheckInclusionAnswer(answer, index, leaf, at); err != nil {
		return nil, fmt.Errorf("fetch inclusion proof: %w", err)
	}
	return answer.Hashes, nil
}

// Consistency fetches and checks the proof that the tree of to extends the tree of from. Both
// checkpoints MUST be from this Log. An error of verify or tlog is evidence of a fork or of a
// broken service.
func (l *Log) Consistency(ctx context.Context, from, to tlog.Checkpoint) ([]id.Hash, error) {
	var answer verify.Consistency
	path := fmt.Sprintf("transparency/consistency?from=%d&to=%d", from.Size, to.Size)
	if err := l.client.fetchPublicJSON(ctx, publicPath(l.slug, path), &answer); err != nil {
		return nil, fmt.Errorf("fetch consistency proof: %w", err)
	}
	if err := verify.CheckConsistencyAnswer(answer, from, to); err != nil {
		return nil, fmt.Errorf("fetch consistency proof: %w", err)
	}
	return answer.Hashes, nil
}

// Bundle fetches the bundle of one event and checks it under the log's key. The caller MUST check
// the report, because a failed check is not an error of the fetch. A bundle of another event is an
// error.
func (l *Log) Bundle(ctx context.Context, e id.Event) (*verify.Bundle, verify.Report, error) {
	text, err := l.client.FetchBundle(ctx, l.slug, e)
	if err != nil {
		return nil, verify.Report{}, err
	}
	bundle, err := verify.ParseBundle(text)
	if err != nil {
		return nil, verify.Report{}, fmt.Errorf("fetch bundle: %w", err)
	}
	if bundle.EventID != e {
		return nil, verify.Report{}, fmt.Errorf("fetch bundle: event_id: %w", verify.ErrMismatch)
	}
	known := l.knownKeys()
	key := signerAmong(known, bundle.Checkpoint)
	options := verify.Options{Key: &key, Retired: slices.Concat(known[:len(known)-1], l.retired),
		CheckedAt: id.InstantOf(time.Now())}
	return bundle, verify.Check(bundle, options), nil
}
