package console

import (
	"fmt"
	"net/url"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/internal/wire"
)

// A page shows all voter keys of an account, including those after the first page of the list.
func TestAllVoterKeys(t *testing.T) {
	t.Parallel()
	const pageSize, n = 2, 5
	var asked []string
	all, err := allVoterKeys("acc_1", func(query url.Values) (found wire.VoterKeys, err error) {
		asked = append(asked, query.Get("account_id"))
		first := 0
		if after := query.Get("after"); after != "" {
			_, _ = fmt.Sscan(after, &first)
		}
		for i := first; i < min(first+pageSize, n); i++ {
			found.Keys = append(found.Keys, wire.VoterKey{Thumbprint: fmt.Sprint("thumbprint_", i)})
		}
		if first+pageSize < n {
			found.Next = wire.Text(fmt.Sprint(first + pageSize))
		}
		return found, nil
	})
	var got []string
	for _, k := range all {
		got = append(got, k.Thumbprint)
	}
	want := []string{"thumbprint_0", "thumbprint_1", "thumbprint_2", "thumbprint_3", "thumbprint_4"}
	if err != nil || !slices.Equal(got, want) || !slices.Equal(asked, []string{"acc_1", "acc_1", "acc_1"}) {
		t.Errorf("got %v of %v, %v; want %v", got, asked, err, want)
	}
}
