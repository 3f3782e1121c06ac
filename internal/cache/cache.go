// Package cache keeps values in memory within a bound. It is the only cache of the tree: Map is a bounded map, and Loading
// is a Map that reads missing values from the store.
//
// Invariants of a Map:
//
//   - The total weight of the entries is at most Limit, unless Evictable keeps an entry that should be evicted. A value
//     heavier than Limit is not stored.
//   - Adding an entry takes constant time. To evict one, a hand moves from the oldest entry to the newest: an entry that was
//     used since the hand last passed is marked as unused and stays; the first unused entry is evicted. The hand moves over
//     at most maxLook entries. This is SIEVE (Zhang et al., NSDI 2024) with a bounded search.
//   - Get takes a read lock, allocates nothing, and writes to an entry only once between two visits of the hand.
//
// Invariants of a Loading:
//
//   - While the store is available, a returned value was read at most MaxAge before the call, counted from the start of
//     the read.
//   - While the store is unavailable, a value may be up to Stale older. If Stale is 0, it is never older.
//   - A value that was read for a version is returned only to callers that ask for this version or an older one.
//   - After Drop has returned, every caller reads the value again. The dropped value is never returned as a stale one, even
//     if the new read fails.
//   - For each key and version, one goroutine reads at a time. All callers, including the first, wait for it until their
//     contexts end.
//   - A read is canceled after LoadTime. A read that does not return keeps its key and one of maxLoads slots, so reads never
//     pile up.
//   - Errors are not cached.
//
// Which one to use:
//
//   - A value that never changes under its key, such as a full tile: Map with Weight.
//   - A value that belongs to a config version: Loading with MaxAge Forever and GetAt. On a hot path call Lookup first,
//     because a hit then allocates no closure.
//   - A value that may change in the store: Loading with MaxAge and Get, and Drop in the code that writes it.
//   - An entry that must stay while it is in use: Map with Evictable.
//   - A map that several processors read for every request: Shards, for example 16.
package cache
