// Package cache keeps values in memory within a bound. It is the one cache of the
// tree: Map is a map with a bound, and Loading is a Map that reads missing
// values.
//
// Invariants of a Map:
//
//   - The entries weigh at most Limit together, unless Evictable refuses to let one go.
//     A value that is heavier than Limit alone is not stored.
//   - A new entry takes constant time. To make room, one hand goes over the entries from
//     the oldest to the newest: an entry that was used since the hand passed it last is
//     marked as unused and stays, the first unused one goes. The hand stops after maxLook
//     entries. This is SIEVE (Zhang and others, NSDI 2024) with a bound on the search.
//   - Get takes a read lock, allocates nothing, and writes to memory only once between
//     two visits of the hand.
//
// Invariants of a Loading:
//
//   - As long as the store answers, a value was read at most MaxAge before it is
//     asked for, counted from the beginning of the read.
//   - While the store does not answer, a value may be older by at most Stale. With
//     Stale 0 it never is.
//   - A value that was read for a version is returned to callers that ask for this
//     version or an older one, and to no others.
//   - A dropped value is read again by each caller that asks after Drop returned. It is
//     never shown as a stale value, also when that read has no answer.
//   - One key is read by one goroutine at a time for a version. Callers wait for it for as
//     long as their contexts allow, the first one too.
//   - A read ends after LoadTime. A read that can't be ended keeps its key and one of
//     maxLoads places, so that reads never pile up.
//   - Errors are not remembered.
//
// How to use it:
//
//   - A value that never changes under its key, such as a full tile: Map with Weight.
//   - A value that belongs to a config version: Loading with MaxAge Forever and GetAt.
//     On a hot path Lookup comes first, because a hit then allocates no closure.
//   - A value that may change in the store: Loading with MaxAge and Get, and Drop in the
//     code that writes it.
//   - An entry that must stay while it is in use: Map with Evictable.
//   - A map that several processors read for each request: Shards, 16 for example.
package cache
