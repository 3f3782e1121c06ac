package hashprocess

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// defaultPatience is how long a process may take for a key. A hash takes 20 ms of a processor, of which a busy
	// machine leaves such a process a tenth or less.
	defaultPatience = 10 * time.Second
	// idleTime is how long a process stays without work, because it holds 20 MiB and more.
	idleTime = time.Minute
)

// Pool starts processes as they are needed, one for each key that is computed at the same time. It may be used
// by several goroutines.
type Pool struct {
	program  string
	args     []string
	logger   *slog.Logger
	patience time.Duration // a process that takes longer for a key is ended

	mu     sync.Mutex
	idle   []*process // the one used last at the end
	closed bool
}

// New returns a pool without processes. They run this program, whose main calls Serve.
func New(logger *slog.Logger) *Pool {
	return &Pool{program: thisProgram, args: []string{argument}, logger: logger, patience: defaultPatience}
}

// Key computes a key in a process of the pool, or else in the calling one.
func (p *Pool) Key(q Parameters) []byte {
	key, err := p.askProcess(q)
	if err == nil {
		return key
	}
	p.logger.Warn("password hash: computed inside the service, in the way of other requests", "error", err)
	return q.Compute()
}

func (p *Pool) askProcess(q Parameters) ([]byte, error) {
	c, err := p.takeProcess()
	if err != nil {
		return nil, err
	}
	key, err := c.askKey(q, time.Now().Add(p.patience))
	if err != nil {
		return nil, errors.Join(err, c.end())
	}
	p.giveBack(c)
	return key, nil
}

// takeProcess returns an idle process, or a new one.
func (p *Pool) takeProcess() (*process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("start process: the pool is closed")
	}
	for len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if c.leisure.Stop() {
			return c, nil
		} // else its time is over, and it ends
	}
	return startProcess(p.program, p.args)
}

func (p *Pool) giveBack(c *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = c.end()
		return
	}
	c.leisure = time.AfterFunc(idleTime, func() { _ = c.end() })
	p.idle = append(p.idle, c)
}

// Close ends the processes. Keys are computed here from now on.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var all error
	for _, c := range p.idle {
		if c.leisure.Stop() {
			all = errors.Join(all, c.end())
		}
	}
	p.idle = nil
	return all
}

// process is one that computes keys, one after the other.
type process struct {
	cmd     *exec.Cmd
	in, out *os.File
	answers *jsontext.Decoder
	leisure *time.Timer // ends the process, while it is idle
}

func startProcess(program string, args []string) (*process, error) {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start process: %w", err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start process: %w", err), theirIn.Close(), in.Close())
	}
	c := &process{cmd: exec.Command(program, args...), in: in, out: out, answers: jsontext.NewDecoder(out)}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Env = theirIn, theirOut, []string{"GOMAXPROCS=1"}
	err = startBehindOthers(c.cmd)
	if err = errors.Join(err, theirIn.Close(), theirOut.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("start process: %w", err), in.Close(), out.Close())
	}
	return c, nil
}

func (c *process) askKey(q Parameters, deadline time.Time) (key []byte, err error) {
	text, err := json.Marshal(q)
	defer clear(text)
	if err == nil {
		err = errors.Join(c.in.SetDeadline(deadline), c.out.SetDeadline(deadline))
	}
	if err == nil {
		_, err = bytes.NewReader(text).WriteTo(c.in)
	}
	if err == nil {
		err = json.UnmarshalDecode(c.answers, &key)
	}
	if err == nil && len(key) != int(q.Size) {
		err = fmt.Errorf("got %d bytes", len(key))
	}
	if err != nil {
		return nil, fmt.Errorf("ask process: %w", err)
	}
	return key, nil
}

// end ends the process and waits for it.
func (c *process) end() error {
	_ = c.cmd.Process.Kill() // it has nothing to finish
	_ = c.cmd.Wait()         // says that it was killed
	return errors.Join(c.in.Close(), c.out.Close())
}
