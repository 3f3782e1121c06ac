package objects

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
)

// Probe writes, replaces, reads and deletes an object with a random name, to check that the store honors conditions. It
// returns ErrUnsupported with the reason if the store does not, and storage.ErrUnavailable if the store cannot be used
// now.
func Probe(ctx context.Context, s Store) error {
	p := probe{s, "probe-" + strings.ToLower(rand.Text())}
	err := p.run(ctx)
	if deleted := s.Delete(ctx, p.name); err == nil {
		err = deleted
	}
	if err != nil {
		return fmt.Errorf("probe the object store: %w", err)
	}
	return nil
}

type probe struct {
	Store
	name string
}

// Contents of the probe's object, with different lengths.
var first, second = []byte("first"), []byte("second, longer")

func (p probe) run(ctx context.Context) error {
	if err := p.Create(ctx, p.name, first); err != nil {
		return err
	}
	err := p.Create(ctx, p.name, second)
	if err := p.expectRefusal(err, ErrExists, "a second create (If-None-Match: *)"); err != nil {
		return err
	}
	version, err := p.expectContent(ctx, first)
	if err != nil {
		return err
	}
	if err := p.Replace(ctx, p.name, second, version); err != nil {
		return err
	}
	// The replaced version is now the wrong one.
	err = p.Replace(ctx, p.name, first, version)
	if err := p.expectRefusal(err, ErrChanged, "a stale replace (If-Match)"); err != nil {
		return err
	}
	if _, err := p.expectContent(ctx, second); err != nil {
		return err
	}
	if err := p.expectAbsence(ctx); err != nil {
		return err
	}
	if b, ok := p.Store.(*Bucket); ok && b.versioned.Load() && !b.expires {
		return fmt.Errorf("%w: the bucket keeps replaced versions, so nothing could be erased: turn versioning off,"+
			" or let a rule delete such versions and add versions=expire", ErrUnsupported)
	}
	return nil
}

// expectRefusal returns nil if a write was rejected with the given error.
func (p probe) expectRefusal(err, want error, write string) error {
	if errors.Is(err, want) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: it accepted %s", ErrUnsupported, write)
}

// expectContent reads the object back, and returns its version.
func (p probe) expectContent(ctx context.Context, want []byte) (version string, err error) {
	got, version, err := p.Read(ctx, p.name, 1<<10)
	if err != nil {
		return "", err
	}
	if !bytes.Equal(got, want) {
		return "", fmt.Errorf("%w: it returned other content than was last written", ErrUnsupported)
	}
	return version, nil
}

// expectAbsence deletes the object and checks that it is gone.
func (p probe) expectAbsence(ctx context.Context) error {
	if err := p.Delete(ctx, p.name); err != nil {
		return err
	}
	if _, _, err := p.Read(ctx, p.name, 1<<10); errors.Is(err, ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	return fmt.Errorf("%w: it returned a deleted object", ErrUnsupported)
}
