// Package help reads the documents that the service explains itself with: the OpenAPI document of its HTTP interface, and the
// runbooks for its alerts in docs/runbooks. Package web renders them as pages, so each text is written once.
//
// Invariants:
//
//   - Each call of the OpenAPI document is in the reference once.
//   - Each section of docs/runbooks is the runbook of one alert: a severity, a symptom and numbered steps.
//   - Each link from one runbook to another leads to a section of the same page.
//   - Markup comes from this package only: texts of the documents are escaped.
package help
