// Package interop tests a served log with third-party programs: the client and
// fsck packages of Tessera, golang.org/x/mod/sumdb/tlog with a separate walk,
// and transparency-dev/merkle. They fetch over HTTP and see only what every
// mirror and auditor sees. Witnesses are tested with Tessera and
// transparency-dev/formats: the cosigned checkpoints that we serve with their policies, and our
// test witness with Tessera's client. The list of logs is read by omniwitness's own parser.
// The package also compares canonical JSON (RFC 8785 with the number rule of the
// service) of the service and of the clients for TypeScript and Python.
//
// Invariants:
//
//   - A third-party verifier passes only if it returns no error within a deadline.
//     A check that never returns has not passed.
//   - Each verifier also reads damaged logs and must reject all of them: a verifier
//     that accepts everything would prove nothing.
//   - Random texts depend only on a seed, so every difference can be reproduced.
//
// It is a separate module, so that none of these programs is linked into the product.
package interop
