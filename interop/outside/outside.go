// Package outside holds a program's view of agentledger: its tests use the public packages
// alone, against the real server.
//
// The module's path lies outside of github.com/agentledger/agentledger. The compiler
// therefore refuses every import of an internal package here.
package outside
