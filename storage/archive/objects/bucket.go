package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Bucket stores objects below a prefix of a bucket. The version of an object is its ETag.
type Bucket struct {
	sender
	expires bool // a lifecycle rule of the operator deletes replaced versions
}

// Create implements Store. If a retry after a lost response finds the object with the same content, it succeeds.
func (b *Bucket) Create(ctx context.Context, name string, data []byte) error {
	return b.writeObject(ctx, "create", ErrExists, name, data, http.Header{"If-None-Match": {"*"}})
}

// Replace implements Store. If a retry after a lost response finds the object with the same content, it succeeds.
func (b *Bucket) Replace(ctx context.Context, name string, data []byte, version string) error {
	if !isVersion(version) {
		return fmt.Errorf("replace: %w", ErrChanged)
	}
	return b.writeObject(ctx, "replace", ErrChanged, name, data, http.Header{"If-Match": {`"` + version + `"`}})
}

// writeObject writes data under a condition. It returns refused (wrapped) if the condition does not hold.
func (b *Bucket) writeObject(
	ctx context.Context, step string, refused error, name string, data []byte, condition http.Header,
) error {
	if err := checkName(name); err != nil {
		return err
	}
	r := request{method: http.MethodPut, name: name, body: data, header: condition}
	a, err := b.send(ctx, r)
	switch {
	case err != nil:
		return unavailable(step, err)
	case a.status == http.StatusOK:
		return nil
	case a.status == http.StatusPreconditionFailed, a.isAbsent() && condition.Get("If-Match") != "":
		if a.repeated {
			return b.wantWritten(ctx, step, refused, name, data)
		}
		return fmt.Errorf("%s: %w", step, refused)
	}
	return unavailable(step, a.failure())
}

// wantWritten returns nil if the object has the content that an earlier attempt may have written, and otherwise
// refused.
func (b *Bucket) wantWritten(ctx context.Context, step string, refused error, name string, data []byte) error {
	stored, _, err := b.Read(ctx, name, int64(len(data)))
	switch {
	case err == nil && bytes.Equal(stored, data):
		return nil
	case err == nil, errors.Is(err, ErrNotFound), errors.Is(err, ErrTooLarge):
		return fmt.Errorf("%s: %w", step, refused)
	}
	return fmt.Errorf("%s: check for the first attempt: %w", step, err)
}

// Read implements Store.
func (b *Bucket) Read(ctx context.Context, name string, limit int64) ([]byte, string, error) {
	if err := checkName(name); err != nil {
		return nil, "", err
	}
	a, err := b.send(ctx, request{method: http.MethodGet, name: name, limit: limit})
	switch {
	case errors.Is(err, ErrTooLarge):
		return nil, "", fmt.Errorf("read: %w", ErrTooLarge)
	case err != nil:
		return nil, "", unavailable("read", err)
	case a.isAbsent():
		return nil, "", fmt.Errorf("read: %w", ErrNotFound)
	case a.status != http.StatusOK:
		return nil, "", unavailable("read", a.failure())
	}
	version := a.version()
	if version == "" {
		return nil, "", unavailable("read", errors.New("the response has no strong ETag"))
	}
	return a.body, version, nil
}

// Delete implements Store.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	a, err := b.send(ctx, request{method: http.MethodDelete, name: name})
	switch {
	case err != nil:
		return unavailable("delete", err)
	case a.status == http.StatusNoContent, a.status == http.StatusOK, a.isAbsent():
		return nil
	}
	return unavailable("delete", a.failure())
}

// isVersion reports whether a text can be an ETag without its quotes.
func isVersion(s string) bool {
	unfit := func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' }
	return s != "" && strings.IndexFunc(s, unfit) < 0
}
