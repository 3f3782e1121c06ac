package admission_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
)

var home, office, cafe = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8::1")

// Neither a tenant nor a network gets the last slots, which are reserved for those that have none.
func TestDownloadsAreShared(t *testing.T) {
	type party struct {
		tenant id.Tenant
		from   netip.Addr
	}
	for name, c := range map[string]struct {
		all, tenant int
		asks        []party
		want        []bool
	}{
		"tenants of one network": {4, 1, []party{{1, home}, {2, home}, {3, home}, {4, office}, {5, office}, {6, cafe}, {7, cafe}},
			[]bool{true, true, false, true, false, true, false}},
		"one tenant of several networks": {4, 1, []party{{1, home}, {1, office}, {2, office}}, []bool{true, false, true}},
		"several downloads of a tenant": {8, 3, []party{{1, home}, {1, office}, {1, home}, {1, home}, {2, cafe}, {2, cafe}, {2, office}, {3, cafe}},
			[]bool{true, true, true, false, true, true, true, false}},
		"addresses of one IPv6 network": {4, 1, []party{{1, cafe}, {2, cafe.Next()}, {3, cafe.Next()}, {4, home}}, []bool{true, true, false, true}},
		"no address":                    {4, 1, []party{{1, netip.Addr{}}, {2, netip.Addr{}}, {3, netip.Addr{}}, {4, home}}, []bool{true, true, false, true}},
	} {
		d := admission.NewDownloads(c.all, c.tenant)
		var held []func(bool)
		for i, p := range c.asks {
			release, err := d.Acquire(p.tenant, p.from)
			if (err == nil) != c.want[i] {
				t.Errorf("%s: download %d: got %v, want admitted %v", name, i, err, c.want[i])
			}
			if err != nil && (!fault.Is(err, fault.Overloaded) || fault.Of(err).RetryAfter <= 0) {
				t.Errorf("%s: download %d: got %#v, want overloaded with a time", name, i, err)
			}
			if release != nil {
				held = append(held, release)
			}
		}
		for _, release := range held {
			release(false)
		}
		for i := range c.all {
			from := netip.AddrFrom4([4]byte{10, byte(i)})
			if _, err := d.Acquire(id.Tenant(100+i), from); err != nil {
				t.Errorf("%s: slot %d was not released: %v", name, i, err)
			}
		}
	}
}

// Only a tenant whose reader was too slow must wait for a minute.
func TestDownloadsAfterASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := admission.NewDownloads(4, 1)
		release, err := d.Acquire(red, home)
		if err != nil {
			t.Fatal(err)
		}
		release(true)
		if _, err := d.Acquire(red, office); err == nil || fault.Of(err).RetryAfter != time.Minute {
			t.Errorf("at once: got %v", err)
		}
		if release, err = d.Acquire(blue, home); err != nil {
			t.Fatalf("another tenant: %v", err)
		}
		time.Sleep(time.Minute)
		if _, err := d.Acquire(red, home); err != nil {
			t.Errorf("a minute later: %v", err)
		}
		release(true)
	})
}
