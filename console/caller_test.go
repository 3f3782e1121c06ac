package console

import (
	"context"
	"reflect"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// Each exported call checks the permission of its caller first. Otherwise a zero server would panic.
func TestCallsCheckTheCaller(t *testing.T) {
	t.Parallel()
	nobody := func(context.Context, id.Tenant, account.ID) (account.ID, error) { return "", nil }
	server := reflect.ValueOf(&Server{surface: &surface{surfaceOptions: surfaceOptions{Edge: &edge.Edge{}, Represents: nobody}}})
	calls := 0
	for i := range server.NumMethod() {
		name, call := server.Type().Method(i).Name, server.Method(i)
		if name == "CheckOwner" || name == "ServeRead" || name == "ServeChange" || call.Type().NumIn() < 2 ||
			call.Type().In(1) != reflect.TypeFor[*Caller]() {
			continue
		}
		calls++
		for _, who := range []account.Session{{Tenant: 7, Role: "no role"}, {Tenant: id.Service, Role: account.Owner}} {
			args := []reflect.Value{reflect.ValueOf(t.Context()), reflect.ValueOf(NewCaller(&who, ""))}
			for n := 2; n < call.Type().NumIn(); n++ {
				args = append(args, reflect.Zero(call.Type().In(n)))
			}
			if call.Type().IsVariadic() {
				args = args[:len(args)-1]
			}
			results := call.Call(args)
			if err, _ := results[len(results)-1].Interface().(error); !fault.Is(err, fault.Forbidden) {
				t.Errorf("%s by %q of tenant %d: got %v, want a refusal", name, who.Role, who.Tenant, err)
			}
		}
	}
	if calls < 60 {
		t.Errorf("got %d calls", calls)
	}
}
