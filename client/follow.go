package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sort"

	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// Memory is what a reader of a log remembers between two visits. Its JSON form can be stored.
// Anyone who can write it can make the reader forget.
type Memory struct {
	// Checkpoint is the signed note of the largest checked tree, or "" before the first visit.
	Checkpoint string `json:"checkpoint"`
	// Keys are the keys that the log stated under a known key, oldest first.
	Keys []verify.AcceptedKey `json:"accepted_keys,omitzero"`
}

// Followed is the result of Follow.
type Followed struct {
	Memory     Memory
	Checkpoint tlog.Checkpoint      // of the head
	NewKeys    []verify.AcceptedKey // accepted by this call; String describes the change
}

// Follow fetches the head and checks that it extends the tree that the reader remembers from its
// last visit. The zero Memory is a first visit.
//
// If an unknown key signed the head, Follow accepts it if the log states it under a known key, in a
// tree that is of one history with the remembered tree and the head (verify.CheckKeyStatement). The
// other methods of l accept this key from then on, and the previous key only for smaller trees.
//
// Errors are those of Head and Consistency: a smaller head than the remembered one, another history
// and a key without a statement wrap an error of verify or tlog. Keep the old memory after an
// error.
func (l *Log) Follow(ctx context.Context, memory Memory) (Followed, error) {
	f, known, err := l.follow(ctx, memory)
	if err != nil {
		return Followed{}, fmt.Errorf("follow log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = known
	return f, nil
}

func (l *Log) follow(ctx context.Context, memory Memory) (f Followed, known []verify.LogKey, err error) {
	known, trees, err := l.recall(memory)
	if err != nil {
		return f, nil, fmt.Errorf("memory: %w", err)
	}
	var head verify.Head
	if err := l.client.fetchPublicJSON(ctx, publicPath(l.slug, "transparency/head"), &head); err != nil {
		return f, nil, err
	}
	f.Memory = Memory{Checkpoint: head.Checkpoint, Keys: slices.Clone(memory.Keys)}
	statements, unstated := verify.FindKeyStatements([]byte(head.Checkpoint), known,
		func(key tlog.KeyHash) (*verify.Bundle, error) { return l.keyStatement(ctx, key) })
	for _, s := range statements {
		if known, err = s.AddTo(known); err != nil {
			return f, nil, err
		}
		trees, f.NewKeys = append(trees, s.Checkpoint), append(f.NewKeys, s.AcceptedKey)
	}
	f.Memory.Keys = append(f.Memory.Keys, f.NewKeys...)
	if _, err = openKnown(known, head.Checkpoint); err == nil {
		f.Checkpoint, err = verify.CheckHead(head, signerAmong(known, head.Checkpoint))
	}
	if err != nil {
		return f, nil, errors.Join(err, unstated)
	}
	return f, known, l.checkOneHistory(ctx, append(trees, f.Checkpoint))
}

// recall returns the keys and the tree that a reader remembers. There is no tree before the first
// visit.
func (l *Log) recall(memory Memory) (known []verify.LogKey, trees []tlog.Checkpoint, err error) {
	known = []verify.LogKey{verify.Always(l.key)}
	for _, k := range memory.Keys {
		if known, err = k.AddTo(known); err != nil {
			return nil, nil, err
		}
	}
	if memory.Checkpoint == "" {
		return known, nil, nil
	}
	c, err := openKnown(known, memory.Checkpoint)
	return known, []tlog.Checkpoint{c}, err
}

// checkOneHistory checks that each tree extends all smaller ones. The last tree must be the
// largest.
func (l *Log) checkOneHistory(ctx context.Context, trees []tlog.Checkpoint) error {
	newest := trees[len(trees)-1]
	sort.SliceStable(trees, func(i, j int) bool { return trees[i].Size < trees[j].Size })
	if last := trees[len(trees)-1]; last.Size > newest.Size {
		return fmt.Errorf("rollback: the head has size %d, and the log's key signed a tree of size %d: %w", newest.Size,
			last.Size, verify.ErrMismatch)
	}
	for i, to := range trees[1:] {
		from := trees[i]
		if from.Size == to.Size {
			if from.Root != to.Root {
				return fmt.Errorf("fork: two trees of size %d have different roots: %w", to.Size, verify.ErrMismatch)
			}
			continue
		}
		if from.Size == 0 {
			continue
		}
		if _, err := l.Consistency(ctx, from, to); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) keyStatement(ctx context.Context, key tlog.KeyHash) (*verify.Bundle, error) {
	text, err := l.client.sendWithRetries(ctx,
		call{method: http.MethodGet, path: publicPath(l.slug, "transparency/keys/"+key.String()), max: maxStatement})
	if err != nil {
		return nil, fmt.Errorf("fetch key statement: %w", err)
	}
	return parseKeyStatement(text)
}

func (l *Log) knownKeys() []verify.LogKey {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known
}

// signerAmong returns the known key that has a line in a checkpoint and signs trees of its size, or
// else the latest key.
func signerAmong(known []verify.LogKey, checkpoint string) tlog.VerifierKey {
	newest := known[len(known)-1].Key
	note, err := tlog.ParseNote([]byte(checkpoint))
	if err != nil {
		return newest
	}
	c, err := note.ReadCheckpoint()
	if err != nil {
		return newest
	}
	for _, k := range known {
		if k.Signed(c.Size) && slices.ContainsFunc(note.Signatures, func(line tlog.Signature) bool {
			return line.Name == k.Key.Name() && line.KeyHash == k.Key.Hash()
		}) {
			return k.Key
		}
	}
	return newest
}

// openKnown opens a checkpoint with the known key that signs trees of its size.
func openKnown(known []verify.LogKey, checkpoint string) (tlog.Checkpoint, error) {
	key := signerAmong(known, checkpoint)
	c, err := tlog.OpenCheckpoint([]byte(checkpoint), key)
	if err != nil {
		return tlog.Checkpoint{}, err
	}
	for _, k := range known {
		if k.Key == key && !k.Signed(c.Size) {
			return tlog.Checkpoint{}, fmt.Errorf("the key %s signs no tree of size %d: %w", verify.Signer(key.Name(), key.Hash()),
				c.Size, tlog.ErrSignature)
		}
	}
	return c, nil
}

// maxStatement is the maximum size of a key statement in bytes.
const maxStatement = 1 << 20
