// Package interop holds a served log against programs of others: the client and
// fsck packages of Tessera, golang.org/x/mod/sumdb/tlog with a walk of its own,
// and transparency-dev/merkle. They fetch over HTTP and see nothing but what
// every mirror and auditor sees. Witnesses are held against Tessera and
// transparency-dev/formats: what we show as cosigned by their policies, and our
// test witness by Tessera's client. The list of logs is read by omniwitness's own parser.
//
// Invariants:
//
//   - What they say is judged by the error that they return, within a deadline.
//     A check that never returns has not passed.
//   - Each of them also reads damaged logs and must refuse every one: a verifier
//     that accepts all would prove nothing.
//
// It is a module of its own, so that none of them is linked into the product.
package interop
