package listen

import (
	"testing"
	"testing/synctest"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/mcp/message"
)

// A client that does not read the messages of its request loses it, and does not stop the other requests of its pool.
func TestClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pool{inbox: newInbox(t.Context(), func() {}), open: map[string]*statelessRequest{}}
		request := message.Message{ID: jsontext.Value("7"), Method: "tools/call",
			Params: jsontext.Value(`{"_meta":{"progressToken":"mine"}}`)}
		slow, entered, err := p.enter(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		other, otherEntered, err := p.enter(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		progress := message.Message{Method: "notifications/progress", Params: jsontext.Value(`{"progressToken":` + string(entered.ID) + `}`)}
		for range maxQueued + 1 {
			if err := p.Write(progress); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-slow.gone:
		default:
			t.Error("the request that nobody reads is still open")
		}
		if err := p.Write(message.Message{ID: otherEntered.ID, Result: jsontext.Value(`{}`)}); err != nil {
			t.Fatal(err)
		}
		if got := <-other.messages; string(got.ID) != "7" || string(got.Result) != "{}" {
			t.Errorf("the other request: got %+v", got)
		}
	})
}
