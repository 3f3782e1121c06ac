package rekey

import (
	"github.com/agentledger/agentledger/internal/deliver/mail"
	"github.com/agentledger/agentledger/internal/deliver/streamexport"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/log"
)

// SealedTexts returns every kind of record that contains sealed texts under many keys.
func SealedTexts() []seal.Texts { return []seal.Texts{mail.SealedMessages()} }

// SealedRecords returns every kind of record that contains private keys or other sealed texts.
func SealedRecords() []seal.Record {
	return []seal.Record{log.SealedLogKeys(), sysevent.SealedSystemKey(), agent.SealedBridgeKey(),
		approval.SealedGrantKey(), webhook.SealedKey(), webhook.SealedEndpoints(),
		streamexport.SealedExport()}
}
