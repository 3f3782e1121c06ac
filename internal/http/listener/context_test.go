package listener_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/internal/http/listener"
)

// A Context ends for the right reasons with the right error, as seen through Done, Err and a derived context.
func TestContextEnds(t *testing.T) {
	for _, test := range []struct {
		name string
		act  func(c *listener.Context, client context.CancelFunc)
		want error
	}{
		{"its time has not come", func(*listener.Context, context.CancelFunc) { time.Sleep(time.Second - 1) }, nil},
		{"its time has come", func(*listener.Context, context.CancelFunc) { time.Sleep(time.Second) }, context.DeadlineExceeded},
		{"the client goes", func(_ *listener.Context, client context.CancelFunc) { client() }, context.Canceled},
		{"it is released", func(c *listener.Context, _ context.CancelFunc) { c.Release() }, context.Canceled},
		{"released, and then its time comes", func(c *listener.Context, _ context.CancelFunc) { c.Release(); time.Sleep(time.Second) }, context.Canceled},
		{"paused", func(c *listener.Context, _ context.CancelFunc) { c.Pause(); time.Sleep(time.Minute) }, nil},
		{"paused for a while", func(c *listener.Context, _ context.CancelFunc) { pauseFor(c, time.Minute); time.Sleep(time.Second - 1) }, nil},
		{"paused for a while, and its time has come", func(c *listener.Context, _ context.CancelFunc) { pauseFor(c, time.Minute); time.Sleep(time.Second) }, context.DeadlineExceeded},
		{"paused, and the client goes", func(c *listener.Context, client context.CancelFunc) { c.Pause(); client() }, context.Canceled},
	} {
		for _, waits := range []bool{false, true} {
			t.Run(test.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					parent, client := context.WithCancel(t.Context())
					defer client()
					c := listener.WithContext(parent, time.Now().Add(time.Second))
					defer c.Release()
					below := context.Context(c)
					if waits {
						var cancel context.CancelFunc
						below, cancel = context.WithCancel(context.WithValue(c, c, "x"))
						defer cancel()
						_ = c.Done()
					}
					test.act(c, client)
					synctest.Wait()
					if got := c.Err(); !errors.Is(got, test.want) {
						t.Errorf("Err: got %v, want %v", got, test.want)
					}
					synctest.Wait()
					select {
					case <-below.Done():
						if test.want == nil {
							t.Error("it ended")
						}
					default:
						if test.want != nil {
							t.Error("it did not end")
						}
					}
					if got := below.Err(); !errors.Is(got, test.want) {
						t.Errorf("made from it: got %v, want %v", got, test.want)
					}
					if listener.ContextOf(below) != c {
						t.Error("it is not found from the context made from it")
					}
				})
			})
		}
	}
}

func pauseFor(c *listener.Context, d time.Duration) {
	c.Pause()
	time.Sleep(d)
	c.Resume()
}

// Detached work still ends at the deadline.
func TestDetached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, client := context.WithCancel(t.Context())
		c := listener.WithContext(parent, time.Now().Add(time.Second))
		defer c.Release()
		on, cancel := listener.DetachedContext(c)
		defer cancel()
		client()
		if err := on.Err(); err != nil {
			t.Errorf("the client has gone: got %v", err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if err := on.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want DeadlineExceeded", err)
		}
		free, cancelFree := listener.DetachedContext(parent)
		if free.Err() != nil {
			t.Error("without a deadline it does not end")
		}
		cancelFree()
	})
}

// Done soon notices that the client has disconnected, whenever that happens and however the deadline was moved. Another
// client's context does not end.
func TestClientGoes(t *testing.T) {
	for name, move := range map[string]func(*listener.Context){
		"at once":         func(*listener.Context) {},
		"later":           func(*listener.Context) { time.Sleep(time.Second) },
		"after a body":    func(c *listener.Context) { pauseFor(c, time.Second) },
		"within a body":   func(c *listener.Context) { time.Sleep(time.Millisecond); c.Pause() },
		"extended":        func(c *listener.Context) { c.Extend(time.Hour) },
		"extended, later": func(c *listener.Context) { time.Sleep(time.Second); c.Extend(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, client := context.WithCancel(t.Context())
				c := listener.WithContext(parent, time.Now().Add(time.Minute))
				defer c.Release()
				beside := listener.WithContext(t.Context(), time.Now().Add(time.Minute))
				defer beside.Release()
				done, others := c.Done(), beside.Done()
				move(c)
				client()
				time.Sleep(50 * time.Millisecond)
				synctest.Wait()
				select {
				case <-done:
				case <-others:
					t.Error("the neighbour's ended")
				default:
					t.Error("it did not end")
				}
			})
		})
	}
}

// A short wait allocates a channel and a timer with its function.
func TestShortWaitAllocates(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := testing.AllocsPerRun(100, func() {
		c := listener.WithContext(parent, time.Now().Add(time.Minute))
		_ = c.Done()
		c.Release()
	})
	if got > 4 {
		t.Errorf("got %v objects, want at most 4", got)
	}
}

func BenchmarkContext(b *testing.B) {
	parent, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.Run("nobody waits", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			listener.WithContext(parent, time.Now().Add(time.Minute)).Release()
		}
	})
	b.Run("somebody waits", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c := listener.WithContext(parent, time.Now().Add(time.Minute))
			_ = c.Done()
			c.Release()
		}
	})
	b.Run("context.WithDeadline", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, cancel := context.WithDeadline(parent, time.Now().Add(time.Minute))
			cancel()
		}
	})
}

// Extend moves the deadline of a context, never to an earlier time, and has no effect after the context has ended.
func TestExtend(t *testing.T) {
	c := listener.WithContext(t.Context(), time.Now().Add(time.Minute))
	done := c.Done()
	c.Extend(time.Hour)
	c.Extend(time.Minute)
	if at, _ := c.Deadline(); time.Until(at) < 30*time.Minute {
		t.Errorf("got deadline %v", at)
	}
	if c.Err() != nil {
		t.Errorf("got %v", c.Err())
	}
	c.Release()
	<-done
	over := listener.WithContext(t.Context(), time.Now().Add(-time.Second))
	defer over.Release()
	<-over.Done()
	over.Extend(time.Hour)
	if over.Err() == nil {
		t.Error("a context that had ended goes on")
	}
}
