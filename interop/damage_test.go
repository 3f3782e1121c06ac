package interop

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
)

// Damage to every kind of resource is found by a client that reads the whole log.
func TestDamageIsFound(t *testing.T) {
	s := serve(t)
	const size = 256*256 + 256 + 5
	s.grow(t, s.tenant, id.Index(size))
	key, origin := s.key(t), s.origin(t)
	flip := func(suffix string, at int) transport {
		return func(path string, body []byte) []byte {
			if strings.HasSuffix(path, suffix) {
				body = bytes.Clone(body)
				body[(at+len(body))%len(body)] ^= 1
			}
			return body
		}
	}
	for name, c := range map[string]struct {
		bend   transport
		damage bool
	}{
		"nothing":                     {nil, false},
		"leaf tile":                   {flip("/tile/0/000", 77), true},
		"partial leaf tile":           {flip("/tile/0/257.p/5", -3), true},
		"tile of level 1":             {flip("/tile/1/000", 0), true},
		"partial tile of level 1":     {flip("/tile/1/001.p/1", 5), true},
		"partial tile of level 2":     {flip("/tile/2/000.p/1", 5), true},
		"entry":                       {flip("/tile/entries/100", 40), true},
		"length of an entry":          {flip("/tile/entries/101", 1), true},
		"last entry":                  {flip("/tile/entries/257.p/5", -1), true},
		"root in the checkpoint":      {replace("/checkpoint", "\n65797\n", "\n65796\n"), true},
		"signature of the checkpoint": {flip("/checkpoint", -5), true},
		"bundle cut off":              {cutOff("/tile/entries/256"), true},
	} {
		limit := deadline
		if c.damage {
			limit = 8 * time.Second // fsck does not return for some kinds
		}
		err := fsckLog(origin, key, s.fetcher(t, c.bend), 2, limit)
		if (err != nil) != c.damage {
			t.Errorf("%s: fsck says %.200v", name, err)
		}
		w := &walker{t.Context(), c.bend.client(), s.prefix}
		if err := w.all(t, s); (err != nil) != c.damage {
			t.Errorf("%s: the walk says %v", name, err)
		}
	}
}

// all reads the latest checkpoint and everything below it.
func (w *walker) all(t testing.TB, s *served) error {
	text, err := w.fetch("checkpoint")
	must(t, err)
	h, err := open(text, s.key(t))
	if err != nil {
		return err
	}
	return w.walk(h, s.origin(t))
}

func replace(suffix, old, with string) transport {
	return func(path string, body []byte) []byte {
		if !strings.HasSuffix(path, suffix) {
			return body
		}
		return bytes.Replace(body, []byte(old), []byte(with), 1)
	}
}

func cutOff(suffix string) transport {
	return func(path string, body []byte) []byte {
		if !strings.HasSuffix(path, suffix) {
			return body
		}
		return body[:len(body)-1]
	}
}
