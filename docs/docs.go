// Package docs contains the documents that the service itself serves.
package docs

import _ "embed"

// Operations is operations.md, the runbook. The service serves the parts that its alerts refer to.
//
//go:embed operations.md
var Operations string
