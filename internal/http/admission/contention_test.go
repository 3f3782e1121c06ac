package admission_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/internal/http/admission"
)

// A tenant that repeats requests is alone. Two tenants contend for a second.
func TestContention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := admission.NewContention()
		steps := []struct {
			name      string
			tenant    admission.Tenant
			after     time.Duration
			contended bool
		}{
			{"the first", of(red), 0, false},
			{"the same", of(red), time.Hour, false},
			{"another", of(blue), 0, true},
			{"a while later the same", of(blue), time.Second - 1, true},
			{"a second later", of(blue), 1, false},
			{"anonymous readers of its log", admission.Tenant{ID: blue, Public: true}, 0, true},
		}
		for _, s := range steps {
			time.Sleep(s.after)
			c.Note(s.tenant)
			if got := c.Contended(); got != s.contended {
				t.Errorf("%s: contended %v, want %v", s.name, got, s.contended)
			}
		}
		var none *admission.Contention
		if none.Note(of(red)); !none.Contended() {
			t.Error("alone without a contention to know it")
		}
	})
}
