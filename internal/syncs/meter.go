package syncs

import (
	"context"
	"io"
	"sync"
)

// Meter counts the work of a long operation for whoever shows its progress. The operation finds it in its context, so that it
// need not know whether anyone watches. All methods and functions may be called concurrently.
type Meter struct {
	mu sync.Mutex
	p  Progress
}

// Progress is the state of a Meter.
type Progress struct {
	Step  int    // increases with each call of BeginStep
	Doing string // what the step does, such as "verifying"; if "", nothing is shown
	Units string // what is counted, such as "events"
	Done  int64
	Total int64 // or 0 if it is unknown
}

// Read returns the state.
func (m *Meter) Read() Progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.p
}

type meterKey struct{}

// WithMeter returns a context in which operations count on m.
func WithMeter(ctx context.Context, m *Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

// BeginStep begins a step, whose counts are 0.
func BeginStep(ctx context.Context, doing, units string) {
	count(ctx, func(p *Progress) { *p = Progress{Step: p.Step + 1, Doing: doing, Units: units} })
}

// ExpectWork adds to the total of the step.
func ExpectWork(ctx context.Context, n int64) { count(ctx, func(p *Progress) { p.Total += n }) }

// CountWork adds to what is done of the step.
func CountWork(ctx context.Context, n int64) { count(ctx, func(p *Progress) { p.Done += n }) }

// SetWork sets what is done of the step, and its total.
func SetWork(ctx context.Context, done, total int64) {
	count(ctx, func(p *Progress) { p.Done, p.Total = done, total })
}

// HasMeter reports whether the work in a context is counted.
func HasMeter(ctx context.Context) bool { return ctx.Value(meterKey{}) != nil }

// MeteredReader returns a reader that counts the bytes it reads.
func MeteredReader(ctx context.Context, r io.Reader) io.Reader { return meteredReader{ctx, r} }

type meteredReader struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (r meteredReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	CountWork(r.ctx, int64(n))
	return n, err
}

func count(ctx context.Context, change func(*Progress)) {
	if m, ok := ctx.Value(meterKey{}).(*Meter); ok {
		m.mu.Lock()
		change(&m.p)
		m.mu.Unlock()
	}
}
