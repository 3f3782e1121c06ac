package archive_test

import (
	"context"
	"strings"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive"
)

// faultyEngine is an engine whose nth write for the archive fails, before or after it takes effect.
type faultyEngine struct {
	archive.Inner
	left  int
	after bool
}

func (f *faultyEngine) do(write func() error) error {
	f.left--
	if f.left != 0 {
		return write()
	}
	if !f.after {
		return storage.ErrUnavailable
	}
	_ = write()
	return storage.ErrUnknown
}

func (f *faultyEngine) Write(ctx context.Context, t id.Tenant, changes []storage.Change) error {
	return f.do(func() error { return f.Inner.Write(ctx, t, changes) })
}

func (f *faultyEngine) DropTexts(ctx context.Context, t id.Tenant, begin, end id.Index) error {
	return f.do(func() error { return f.Inner.DropTexts(ctx, t, begin, end) })
}

func clockAt(t time.Time, seconds int) func() time.Time {
	return func() time.Time { return t.Add(time.Duration(seconds) * time.Second) }
}

// interrupted does something once, before the first object of a bundle is written.
type interrupted struct {
	*memory
	before func()
}

func (i *interrupted) Create(ctx context.Context, name string, data []byte) error {
	if before := i.before; before != nil && strings.Contains(name, "/") {
		i.before = nil
		before()
	}
	return i.memory.Create(ctx, name, data)
}
