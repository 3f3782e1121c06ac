package storagetest_test

import (
	"testing"

	"github.com/agentledger/agentledger/storage/storagetest"
)

func TestModel(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storagetest.Open {
		model := storagetest.NewModel()
		return func(t *testing.T) storagetest.Engine {
			model = model.Reopen()
			return model
		}
	})
}
