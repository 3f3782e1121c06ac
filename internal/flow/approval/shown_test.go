package approval

import (
	"slices"
	"testing"

	"github.com/agentledger/agentledger/internal/tenant/org"
)

func TestShown(t *testing.T) {
	const payload = `{"a_usd":640,"amount_usd":640.5,"big_usd":"12","customer":{"id":"C-1","name":"Zoë"},"fee_jpy":100,"fine_eur":0.125,"huge_usd":1e+30,"items":[{"n":2}],"order_id":"A-1009","rate_xyz":7,"usd":3,"yes":true}`
	var columns []org.Column
	for _, path := range []string{"order_id", "a_usd", "amount_usd", "big_usd", "customer.id", "customer.name", "fee_jpy", "fine_eur", "huge_usd", "items[0].n", "missing", "rate_xyz", "usd", "yes"} {
		columns = append(columns, org.Column{Path: path})
	}
	got := shownOf([]byte(payload), columns)
	want := []Shown{{"order_id", "order", "A-1009", false}, {"a_usd", "", "640.00 USD", true}, {"amount_usd", "", "640.50 USD", true}, {"big_usd", "big usd", "12", false},
		{"customer.id", "customer", "C-1", false}, {"customer.name", "customer name", "Zoë", false}, {"fee_jpy", "", "100 JPY", true}, {"fine_eur", "", "0.125 EUR", true},
		{"huge_usd", "", "1000000000000000000000000000000.00 USD", true}, {"items[0].n", "items[0] n", "2", false}, {"rate_xyz", "rate xyz", "7", false}, {"usd", "usd", "3", false}}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := shownOf(nil, columns); got != nil {
		t.Errorf("erased: got %v", got)
	}
	exact := shownOf([]byte(`{"$tagged":true,"amount_usd":{"$number":"90071992547409931234.5"}}`), columns[2:3])
	if want := (Shown{"amount_usd", "", "90071992547409931234.50 USD", true}); len(exact) != 1 || exact[0] != want {
		t.Errorf("got %+v, want %+v", exact, want)
	}
}
