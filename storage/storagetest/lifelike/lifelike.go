// Package lifelike makes events with texts like those of a service, for tests and benchmarks of
// storage engines that need weight.
//
// Invariants:
//
//   - The texts of a writer depend on its tenant alone, so that every run writes the same bytes.
package lifelike
