package admission_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
)

// The cost of a slot while many tenants wait must not grow with their number.
func BenchmarkTenants(b *testing.B) {
	for _, tenants := range []int{10, 200, 1000} {
		b.Run(fmt.Sprint(tenants), func(b *testing.B) {
			processors := admission.NewProcessors(admission.NewContention(), 2)
			var left atomic.Int64
			left.Store(int64(b.N))
			var group sync.WaitGroup
			for t := range tenants {
				group.Go(func() {
					for left.Add(-1) >= 0 {
						if err := processors.Acquire(b.Context(), of(id.Tenant(t)), 1); err != nil {
							b.Error(err)
						}
						runtime.Gosched() // with the processor, so that the others come to wait
						processors.Release(of(id.Tenant(t)), 1)
					}
				})
			}
			group.Wait()
		})
	}
}
