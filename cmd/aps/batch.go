package main

import (
	"context"
	"errors"

	"github.com/agentledger/agentledger/client"
)

// maxBatch is the maximum number of events that the service accepts in one request.
const maxBatch = 1000

// batchFlags set how many events are sent in one request.
type batchFlags struct {
	Batch int `default:"200" help:"Maximum number of events in one request, 1 to 1000."`
}

func (f batchFlags) checkBatchSize() error {
	if f.Batch < 1 || f.Batch > maxBatch {
		return errors.New("--batch must be 1 to 1000")
	}
	return nil
}

// sendEnvelopes sends signed envelopes in order and returns the outcome of each.
func sendEnvelopes(ctx context.Context, service *client.Client, envelopes [][]byte) []client.Outcome {
	if len(envelopes) != 1 {
		return service.SendBatch(ctx, envelopes)
	}
	result, err := service.Send(ctx, envelopes[0])
	return []client.Outcome{{Result: result, Err: err}}
}
