package wire_test

import (
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/wire"
)

// A zero value is null, null is a zero value, and other values are read as they were written.
func TestNullIfZero(t *testing.T) {
	type document struct {
		Text   wire.Text   `json:"text"`
		Time   wire.Time   `json:"time"`
		Number wire.Number `json:"number"`
	}
	for text, want := range map[string]document{
		`{"text":null,"time":null,"number":null}`: {},
		`{"text":"<a>","time":"2026-01-31T12:00:00.000Z","number":18446744073709551615}`: {"<a>", 1769860800000,
			18446744073709551615},
	} {
		got, err := json.Marshal(want)
		if err != nil || string(got) != text {
			t.Errorf("got %s, %v; want %s", got, err, text)
		}
		read := document{"before", 1, 1}
		if err := json.Unmarshal([]byte(text), &read); err != nil || read != want {
			t.Errorf("read %s: got %v, %v", text, read, err)
		}
	}
	var read wire.Time
	if err := json.Unmarshal([]byte(`"2026-01-31"`), &read); err == nil {
		t.Error("a day was accepted as a time")
	}
}
