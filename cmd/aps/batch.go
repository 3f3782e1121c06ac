package main

import (
	"context"
	"errors"

	"github.com/agentledger/agentledger/client"
)

// maxBatch is how many events the service takes in one request.
const maxBatch = 1000

// batchFlags say how many events go together.
type batchFlags struct {
	Batch int `default:"200" help:"Events in one request at most, 1 to 1000; 1 sends each alone."`
}

func (f batchFlags) checkBatchSize() error {
	if f.Batch < 1 || f.Batch > maxBatch {
		return errors.New("--batch must be 1 to 1000")
	}
	return nil
}

// sendEnvelopes sends signed envelopes, in their order, and returns the outcome of each.
func sendEnvelopes(ctx context.Context, service *client.Client, envelopes [][]byte) []client.Outcome {
	if len(envelopes) != 1 {
		return service.SendBatch(ctx, envelopes)
	}
	result, err := service.Send(ctx, envelopes[0])
	return []client.Outcome{{Result: result, Err: err}}
}
