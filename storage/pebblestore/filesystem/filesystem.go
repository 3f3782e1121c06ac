// Package filesystem is the file systems that a store of package pebblestore lies on: private to its
// owner, or read-only.
//
// Invariants:
//
//   - A file that is made through Private is its owner's alone.
//   - Nothing is changed through ReadOnly.
package filesystem
