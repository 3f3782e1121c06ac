//go:build race

package webhook_test

// manyWaiting is how many deliveries wait in TestManyWaiting.
const manyWaiting = 10_000
