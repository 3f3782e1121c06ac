package decimal_test

import (
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/decimal"
)

// Amounts are exact, and an overflow is an error.
func Example() {
	var sum decimal.Decimal
	for _, text := range []string{"0.1", "0.2", "84.5"} {
		amount, err := decimal.Parse(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		if sum, err = sum.Add(amount); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(sum, sum.Cmp(decimal.FromInt(85)))
	_, err := decimal.Max().Add(sum)
	fmt.Println("out of range:", errors.Is(err, decimal.ErrRange))
	// Output:
	// 84.8 -1
	// out of range: true
}
