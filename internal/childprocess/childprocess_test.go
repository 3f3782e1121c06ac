package childprocess

import (
	"slices"
	"testing"
)

func TestEnvironment(t *testing.T) {
	got := environment([]string{"PATH=/bin", "APS_TOKEN=secret", "APS_KEY_FILE=/k"}, map[string]string{"A": "b"})
	if want := []string{"PATH=/bin", "A=b"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
