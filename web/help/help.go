// Package help reads the documents that the service explains itself with: the OpenAPI document of its HTTP interface, and the
// runbook for its alerts in docs/operations.md. Package web renders them as pages, so each text is written once.
//
// Invariants:
//
//   - Each call of the OpenAPI document is in the reference once.
//   - Each link of a runbook to a section of its own document leads to a section that is there too.
//   - Markup comes from this package only: texts of the documents are escaped.
package help
